//! HTTP on loopback, where it was asked for: the same requests as over the socket, from askers that cannot use one.
//!
//! Whoever can open a port of this machine can ask, also a page in a browser: so everything that can be refused without a
//! look at the store is refused before one. `docs/served.md` has the table.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN,
};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tenure_projection::entry::draw_secret;

use crate::context::Context;
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::private_file::PrivateFile;
use crate::zoo::planted;

use super::Door;
use super::server::{Admitted, Server};
use super::wire::{Answer, LINE_TIME, REQUEST_BYTES_MAX};

/// Where requests go.
const PATH: &str = "/v1";
/// How long a connection may last: a request that comes slowly, its command, and an answer that is taken slowly.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// The most header fields of a request.
const HEADERS_MAX: usize = 32;

/// What is served over HTTP, and to whom.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Web {
    /// Answer on this loopback address too (127.0.0.1:7070); only a sealed store is served so
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A web origin whose pages may ask; any other request that names one is refused
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
}

/// A listener, with whom it lets in.
pub struct Listening {
    listener: TcpListener,
    gate: Gate,
    /// Where it listens.
    pub address: SocketAddr,
    /// The file with the word that askers present.
    pub key: PathBuf,
}

impl Web {
    /// Listens, where that was asked for.
    ///
    /// # Errors
    /// When the address is not one of loopback or is taken, or the store is not sealed.
    pub(super) fn listen(
        self,
        ctx: &Context,
        server: &Server,
        door: &Door,
    ) -> Result<Option<Listening>, Stop> {
        let Some(address) = self.http else {
            return Ok(None);
        };
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} is no address of loopback, and nothing else is served over HTTP"
            );
            return Err(Fault::usage(message).into());
        }
        if !server.is_sealed(ctx)? {
            let message =
                "only a sealed store is served over HTTP: a token of any other can be guessed";
            let fault = Fault::new(Cause::Unsupported, message);
            return Err(fault
                .then("tenure init DIR --sealed", "creates a sealed store")
                .into());
        }
        let failed = |error| {
            Fault::new(
                Cause::Io,
                format!("{address} cannot be listened at: {error}"),
            )
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let word = draw_secret().map_err(|error| ctx.fault(&error))?.reveal();
        let key = door.file("http-token");
        PrivateFile::prepare(&key)?.commit(&word)?;
        let gate = Gate {
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
            origins: self.allow_origin,
            bearer: blake3::hash(format!("Bearer {word}").as_bytes()),
        };
        Ok(Some(Listening {
            listener,
            gate,
            address,
            key,
        }))
    }
}

/// Who is let in.
struct Gate {
    /// What the field `Host` may be.
    hosts: [String; 2],
    /// What the field `Origin` may be, where there is one.
    origins: Vec<String>,
    /// The digest of what the field `Authorization` has to be: digests are compared in one time, whatever they are.
    bearer: blake3::Hash,
}

impl Gate {
    /// Why a request is refused, by its head alone: the first row of the table that it meets.
    fn refuses(&self, head: &Parts) -> Option<(StatusCode, &'static str)> {
        let fields = &head.headers;
        let host = one(fields, &HOST).is_some_and(|host| self.hosts.iter().any(|own| own == host));
        let origin = match fields.get_all(ORIGIN).iter().count() {
            0 => true,
            _ => one(fields, &ORIGIN)
                .is_some_and(|origin| self.origins.iter().any(|own| own == origin)),
        };
        let known = one(fields, &AUTHORIZATION)
            .is_some_and(|given| blake3::hash(given.as_bytes()) == self.bearer);
        let json = one(fields, &CONTENT_TYPE).is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("application/json")
        });
        let length = one(fields, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if (!host && !planted("host-ignored")) || head.uri.authority().is_some() {
            Some((
                StatusCode::MISDIRECTED_REQUEST,
                "Host is none of this server's",
            ))
        } else if !origin {
            Some((StatusCode::FORBIDDEN, "pages of that Origin may not ask"))
        } else if head.uri.path() != PATH {
            Some((StatusCode::NOT_FOUND, "requests go to /v1"))
        } else if head.method != Method::POST {
            Some((StatusCode::METHOD_NOT_ALLOWED, "requests are posted"))
        } else if !known {
            Some((
                StatusCode::UNAUTHORIZED,
                "Authorization is not the word in serve/http-token",
            ))
        } else if !json {
            Some((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type has to be application/json",
            ))
        } else if length.is_some_and(|length| length > REQUEST_BYTES_MAX as u64) {
            Some((StatusCode::PAYLOAD_TOO_LARGE, "the request is too long"))
        } else {
            None
        }
    }
}

/// The value of a field that is there once.
fn one<'h>(fields: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = fields.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Answers until the server stops, on a thread of its own.
///
/// # Errors
/// When the system has no thread or no events to wait for.
pub fn start(server: Arc<Server>, listening: Listening) -> Result<(), Stop> {
    let failed = |error| Fault::new(Cause::Io, format!("HTTP cannot be served: {error}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listening.listener).map_err(failed)?;
    drop(entered);
    let gate = Arc::new(listening.gate);
    let accept = async move {
        while !server.stopping.load(Ordering::SeqCst) {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(admitted) = Admitted::of(&server) {
                        tokio::spawn(connection(admitted, Arc::clone(&gate), stream));
                    }
                }
                // Out of descriptors, say: those who are in give theirs back.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        // Who is in gets an answer; the process ends when nobody is, or waited long enough.
        drop(listener);
        std::future::pending::<()>().await;
    };
    std::thread::Builder::new()
        .spawn(move || runtime.block_on(accept))
        .map_err(failed)?;
    Ok(())
}

/// One request of one connection.
async fn connection(admitted: Admitted, gate: Arc<Gate>, stream: tokio::net::TcpStream) {
    let server = admitted.server();
    let service =
        service_fn(move |request| answer(Arc::clone(&server), Arc::clone(&gate), request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LINE_TIME)
        .max_headers(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // What goes wrong with a connection is its other end's affair, and known there.
    let _ = tokio::time::timeout(CONNECTION_TIME, served).await;
    drop(admitted);
}

async fn answer(
    server: Arc<Server>,
    gate: Arc<Gate>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    if let Some((status, why)) = gate.refuses(&head) {
        return Ok(said(status, &Answer::unserved(why)));
    }
    let body = Limited::new(body, REQUEST_BYTES_MAX).collect();
    let body = match tokio::time::timeout(LINE_TIME, body).await {
        Err(_) => {
            let answer = Answer::unserved("the request came too slowly");
            return Ok(said(StatusCode::REQUEST_TIMEOUT, &answer));
        }
        Ok(Err(error)) => {
            let (status, why) = match error.is::<LengthLimitError>() {
                true => (StatusCode::PAYLOAD_TOO_LARGE, "the request is too long"),
                false => (
                    StatusCode::BAD_REQUEST,
                    "the request did not come to its end",
                ),
            };
            return Ok(said(status, &Answer::unserved(why)));
        }
        Ok(Ok(body)) => body.to_bytes(),
    };
    let carried = tokio::task::spawn_blocking(move || server.answer_remote(&body)).await;
    Ok(match carried {
        Ok(answer) => said(status_of(&answer), &answer),
        Err(_) => said(
            StatusCode::INTERNAL_SERVER_ERROR,
            &Answer::unserved("the server is stopping"),
        ),
    })
}

/// What an exit code is over HTTP.
fn status_of(answer: &Answer) -> StatusCode {
    let Answer::Ran { exit, .. } = answer else {
        return StatusCode::BAD_REQUEST;
    };
    match exit {
        0 | 1 => StatusCode::OK,
        10..=12 => StatusCode::CONFLICT,
        64 => StatusCode::BAD_REQUEST,
        66 => StatusCode::NOT_FOUND,
        75 => StatusCode::SERVICE_UNAVAILABLE,
        77 => StatusCode::FORBIDDEN,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn said(status: StatusCode, answer: &Answer) -> Response<Full<Bytes>> {
    // An answer consists of texts and a number.
    let body = serde_json::to_vec(answer).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    fields.insert(
        hyper::header::CACHE_CONTROL,
        hyper::header::HeaderValue::from_static("no-store"),
    );
    response
}
