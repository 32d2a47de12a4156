//! `audit`: makes every recorded decision again, and says which a correct store would not have made.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tenure_projection::audit::{Audit, Report, Unjudged};
use tenure_projection::core::id::Position;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{BAD, DIM, HEAD, Object, WARN, watched};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Up to this position [default: the newest]
    #[arg(long, value_name = "POSITION")]
    to: Option<String>,
}

impl Args {
    /// Audits: exit 1 when a rule was broken, 3 when none was and something could not be judged.
    ///
    /// # Errors
    /// When the position is not in the log, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let to = self.to.as_deref().map(input::position).transpose()?;
        let reader = ctx.reading()?;
        let head = reader.head().map_err(|error| ctx.fault(&error))?;
        let whole = to.map_or(head.position.0, |to| to.0);
        let passed = AtomicU64::new(0);
        let far = || (passed.load(Ordering::Relaxed), whole);
        let pass = |at: Position| passed.store(at.0, Ordering::Relaxed);
        let report = watched(ctx.out.is_quiet(), far, || Audit::of(&reader, to, pass))
            .map_err(|error| ctx.fault(&error))?;
        if ctx.out.is_json() {
            ctx.out.object(&object(&report))?;
        } else {
            people(ctx, &report)?;
        }
        Ok(match (report.findings.is_empty(), report.is_clean()) {
            (false, _) => Exit::NEGATIVE,
            (true, false) => Exit::INCOMPLETE,
            (true, true) => Exit::DONE,
        })
    }
}

fn verdict(report: &Report) -> &'static str {
    match (report.findings.is_empty(), report.is_clean()) {
        (false, _) => "broken",
        (true, false) => "incomplete",
        (true, true) => "clean",
    }
}

fn object(report: &Report) -> Object {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "position": finding.position.0,
                "rule": finding.rule.as_str(),
                "command": finding.command,
                "message": finding.message,
            })
        })
        .collect();
    let skipped: Vec<Value> = report
        .not_judged
        .iter()
        .map(|unjudged| {
            json!({
                "position": unjudged.first.0,
                "until": unjudged.last.0,
                "why": unjudged.why.to_string(),
            })
        })
        .collect();
    Object::new("audit")
        .with("verdict", verdict(report))
        .with("until", report.until.0)
        .with("judged", report.judged)
        .with("texts_redacted", report.redacted.0)
        .with("bodies_redacted", report.redacted.1)
        .with("not_judged", skipped)
        .with("unproven", report.unproven)
        .with("findings", findings)
}

fn people(ctx: &mut Context, report: &Report) -> Result<(), Stop> {
    for finding in &report.findings {
        let command = finding.command.map_or(String::new(), |c| format!(" {c}"));
        ctx.out.lines([(
            HEAD,
            format!("{}{command}  {}", finding.position, finding.rule.as_str()),
        )])?;
        ctx.out.say(format_args!("  {}", finding.message))?;
        ctx.out
            .styled(DIM, format_args!("  tenure why {}", finding.position))?;
    }
    for Unjudged { first, last, why } in &report.not_judged {
        let last = match last == first {
            true => String::new(),
            false => format!("-{last}"),
        };
        ctx.out
            .styled(WARN, format_args!("{first}{last}  not judged: {why}"))?;
    }
    let (texts, bodies) = report.redacted;
    if texts + bodies > 0 {
        ctx.out.styled(
            DIM,
            format_args!(
                "{texts} texts and {bodies} bodies were taken out: their content was not looked at"
            ),
        )?;
    }
    if report.unproven > 0 {
        let count = report.unproven;
        ctx.out.styled(
            WARN,
            format_args!(
                "{count} frames stand between a loss and the incarnation begun behind it: what they stood on is unproven"
            ),
        )?;
    }
    let style = if report.findings.is_empty() { DIM } else { BAD };
    ctx.out.styled(
        style,
        format_args!(
            "{}: {} decisions up to position {} were made again, {} break a rule, {} could not be judged",
            verdict(report),
            report.judged,
            report.until,
            report.findings.len(),
            report.unjudged(),
        ),
    )
}
