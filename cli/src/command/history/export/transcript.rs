//! `export --transcript`: a branch as a clean transcript of the host that its records came from.

use tenure_projection::core::id::SessionNo;
use tenure_projection::core::state::State;
use tenure_projection::history::{Passage, RecordView, Span};
use tenure_projection::reader::Reader;
use tenure_projection::transcript::Host;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};

/// Prints the bytes of every record that came from a transcript, each on a line of its own, oldest first.
///
/// # Errors
/// When there is none, they are of several hosts, or the log cannot be read.
pub fn run(
    ctx: &mut Context,
    reader: &Reader,
    state: &State,
    session: SessionNo,
) -> Result<Exit, Stop> {
    let name = state.name(session);
    let span = Span {
        session,
        until: state.at.position,
        hidden: false,
    };
    let (mut host, mut others, mut stopped) = (None, 0_u64, None);
    let walked = reader.history(state, span, |passage| {
        if let Passage::Record(record) = passage {
            match of(&record) {
                None => others += 1,
                Some(own) => stopped = print(ctx, &record, &name, own, &mut host).err(),
            }
        }
        Ok(stopped.is_none())
    });
    if let Some(stop) = stopped {
        return Err(stop);
    }
    walked.map_err(|error| ctx.fault(&error))?;
    if host.is_none() {
        let message = format!("{name} holds no record of a host's transcript");
        return Err(Fault::new(Cause::Unsupported, message)
            .then(
                format!("tenure export {name}"),
                "prints its history as JSON Lines",
            )
            .into());
    }
    if others > 0 {
        ctx.out.aside(format_args!(
            "{others} records of {name} came from no transcript and are left out"
        ));
    }
    Ok(Exit::DONE)
}

/// The host whose transcript a record came from: `import --transcript` puts it before the kind.
fn of(record: &RecordView) -> Option<Host> {
    Host::from_word(record.kind.split_once('/')?.0)
}

fn print(
    ctx: &mut Context,
    record: &RecordView,
    name: &str,
    own: Host,
    host: &mut Option<Host>,
) -> Result<(), Stop> {
    let first = *host.get_or_insert(own);
    if first != own {
        let message = format!(
            "{name} has records of {} and of {}: no one host reads both",
            first.as_str(),
            own.as_str()
        );
        return Err(Fault::new(Cause::Unsupported, message).into());
    }
    let Some(body) = &record.body else {
        let position = record.at.position;
        let message = format!("the record at position {position} was taken out of the log");
        return Err(Fault::new(Cause::Unsupported, message).into());
    };
    ctx.out.raw(body)?;
    ctx.out.raw(b"\n")
}
