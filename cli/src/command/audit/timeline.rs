//! `timeline`: every stretch of authority, from where to where.

use tenure_projection::authority::{Authority, Interval};
use tenure_projection::core::id::SessionNo;
use tenure_projection::projector::Projector;
use tenure_projection::views::{Lens, WhoView};

use crate::clock::{When, rfc3339};
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{DIM, human, json};

use super::super::find;

/// Arguments of `timeline`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these sessions
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only stretches that last until a position, time or age, or beyond it
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only stretches that began by a position, time or age
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// How to print it: table, json, csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
}

impl Args {
    /// Prints the stretches in the order in which they began.
    ///
    /// # Errors
    /// When there is no such session, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let format = match self.format.as_str() {
            _ if ctx.out.is_json() => Format::Json,
            "table" => Format::Table,
            "json" => Format::Json,
            "csv" => Format::Csv,
            other => {
                let message = format!("--format {other:?} is neither table, json nor csv");
                return Err(Fault::usage(message).into());
            }
        };
        let since = self.since.as_deref().map(input::when).transpose()?;
        let until = self.until.as_deref().map(input::when).transpose()?;
        let reader = ctx.reading()?;
        let (mut projector, mut authority) = (Projector::new(), Authority::new());
        projector
            .read(&reader, None, &mut [&mut authority])
            .map_err(|error| ctx.fault(&error))?;
        let lens = Lens {
            state: projector.state(),
            host: reader.host(),
            shelf: &*reader,
        };
        let numbers: Vec<SessionNo> = if self.names.is_empty() {
            (0..lens.state.sessions.len())
                .map(|n| SessionNo(n as u64))
                .collect()
        } else {
            let all = self.names.iter().map(|name| find(lens.state, name));
            all.collect::<Result<_, _>>()?
        };
        let mut stretches: Vec<WhoView> = Vec::new();
        for number in numbers {
            let name = lens.state.name(number);
            let intervals = authority.of_session(name.as_bytes()).iter();
            let meant = intervals.filter(|i| overlaps(i, since, until));
            let pool = authority.pool();
            stretches.extend(meant.map(|i| lens.who_then(&name, i.since.at, i, pool)));
        }
        stretches.sort_by_key(|view| view.since.map(|p| p.at.position));
        print(ctx, format, &stretches)?;
        Ok(Exit::DONE)
    }
}

fn overlaps(interval: &Interval, since: Option<When>, until: Option<When>) -> bool {
    let begins = interval.since.at;
    let ends = interval.until.map(|u| u.at);
    let lasts = match since {
        Some(When::At(position)) => ends.is_none_or(|end| end.position > position),
        Some(When::Time(time)) => ends.is_none_or(|end| end.time > time),
        None => true,
    };
    let began = match until {
        Some(When::At(position)) => begins.position <= position,
        Some(When::Time(time)) => begins.time <= time,
        None => true,
    };
    lasts && began
}

fn print(ctx: &mut Context, format: Format, stretches: &[WhoView]) -> Result<(), Stop> {
    match format {
        Format::Json => stretches
            .iter()
            .try_for_each(|view| ctx.out.object(&json::who(view))),
        Format::Csv => {
            ctx.out.say(
                "session,generation,holder,from_position,from_time,by,until_position,until_time,by",
            )?;
            stretches.iter().try_for_each(|view| ctx.out.say(row(view)))
        }
        Format::Table if stretches.is_empty() => ctx.out.styled(DIM, "nobody held anything"),
        Format::Table => stretches
            .iter()
            .try_for_each(|view| ctx.out.say(human::who(view))),
    }
}

fn row(view: &WhoView) -> String {
    let point = |point: Option<tenure_projection::views::PointView>| match point {
        Some(p) => format!("{},{},{}", p.at.position, rfc3339(p.at.time), p.event),
        None => ",,".to_owned(),
    };
    let holder = view.holder.as_ref().map(human::holder).unwrap_or_default();
    let quoted = holder.replace('"', "\"\"");
    let generation = view.generation.map(|g| g.to_string()).unwrap_or_default();
    format!(
        "{},{generation},\"{quoted}\",{},{}",
        view.subject,
        point(view.since),
        point(view.until)
    )
}
