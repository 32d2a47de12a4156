//! `mcp`: the tools of the Model Context Protocol for one agent, over standard input and output. `docs/mcp.md` has the
//! tables.
//!
//! The protocol is the official kit's. What a tool does is what a command does: the command runs in this process, on
//! behalf of the session that the server was started for, and what it prints with `--json` is the result.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tenure_projection::core::id::Token;
use tenure_projection::core::refusal::{Code, Next};

use crate::command::unknown;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::Under;

mod desk;
mod lines;
mod said;
mod tools;

use desk::Desk;
use lines::Lines;

/// How long the end waits for answers that a client takes slowly.
const END_TIME: Duration = Duration::from_secs(5);

/// Arguments of `mcp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    under: Under,
}

impl Args {
    /// Serves until its input ends or a signal ends it.
    ///
    /// # Errors
    /// When there is no store or it is not sealed, what is named is no token, or the system has no threads.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = self.under.token()?;
        let reader = ctx.reading()?;
        if !ctx.look(&reader, |lens| Ok(lens.state.sealed))? {
            return Err(unsealed());
        }
        drop(reader);
        let failed = |error| Fault::new(Cause::Io, format!("MCP cannot be served: {error}"));
        let agent = Agent {
            desk: Arc::new(Desk::open(ctx, token.clone())?),
            instructions: instructions(token.as_ref()),
        };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().build().map_err(failed)?;
        let lines = Lines::open(Arc::clone(&agent.desk)).map_err(failed)?;
        runtime.block_on(serve(&agent, &lines));
        lines.end(END_TIME);
        Ok(Exit::DONE)
    }
}

/// Only a sealed store is served: what an agent reads in a listing must not be enough to act for another session.
fn unsealed() -> Stop {
    let message = "MCP is spoken for a sealed store only: a token of any other can be guessed";
    Fault::new(Cause::Unsupported, message)
        .then("tenure init DIR --sealed", "creates a sealed store")
        .into()
}

/// There is no session to act for.
fn unbound() -> Stop {
    let message = "this server was started without a token: it reads, and acts for no session";
    let mut stop = unknown(Code::MissingToken, "", message.to_owned());
    if let Stop::Refused(refusal) = &mut stop {
        refusal.next = vec![Next {
            command: "TENURE_TOKEN_FILE=FILE tenure mcp".to_owned(),
            effect: "serves the session whose token stands in the file, once the host starts it so",
        }];
    }
    stop
}

/// Answers until nothing more is said.
async fn serve(agent: &Agent, lines: &Lines) {
    loop {
        match serve_server(agent.clone(), lines.clone()).await {
            // It ended: how is of no consequence, since what was said was answered.
            Ok(running) => {
                let _ = running.waiting().await;
                return;
            }
            // The first message was one that nothing can begin with; the next may be another.
            Err(_) if lines.is_open() => {}
            Err(_) => return,
        }
    }
}

/// What a client is told about the whole.
fn instructions(token: Option<&Token>) -> String {
    let bound = match token {
        Some(token) => format!(
            "This server acts for the session {token} and for no other. When somebody takes that session over, every \
             tool that writes is answered with a refusal that says who holds it now; stop working and say so."
        ),
        None => "This server was started without a token: it reads, and every tool that writes is refused.".to_owned(),
    };
    format!(
        "Tenure is a ledger of authority for agent sessions: who may act for a session now, what work it was given, and \
         who else works in the same checkout. {bound} {}",
        said::DATA
    )
}

/// The tools, for one agent.
#[derive(Clone)]
struct Agent {
    desk: Arc<Desk>,
    instructions: String,
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(tools)
            .with_server_info(Implementation::new("tenure", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions.clone())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = tools::ALL.iter().map(tools::Tool::described).collect();
        Ok(ListToolsResult::with_all_items(all))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let wrong = |why| ErrorData::invalid_params(why, None);
        let tool = tools::find(&request.name).map_err(wrong)?;
        let given = request.arguments.unwrap_or_default();
        let asked = tool.asked(given).map_err(wrong)?;
        let cancelled = context.ct.clone();
        let answered = self
            .desk
            .asks(tool, asked, move || cancelled.is_cancelled())
            .await;
        let Some(answered) = answered else {
            return Err(ErrorData::internal_error("the server is ending", None));
        };
        let mut result = CallToolResult::default();
        result.is_error = Some(answered.is_refused());
        result.content = vec![ContentBlock::text(said::text(&answered))];
        result.structured_content = Some(tool.structured(answered));
        Ok(result.into())
    }

    /// Requests that the kit does not know, or whose parameters it does not.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if ["tools/call", "tools/list", "initialize"].contains(&method.as_str()) {
            let message = format!("the parameters of {method} are not what the protocol asks for");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("there is no method {method:?}");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}
