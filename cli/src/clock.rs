//! Times as people and programs write them: RFC 3339 in UTC with microseconds, ages, and the wall clock that
//! ages are counted from.

use jiff::Timestamp;
use tenure_projection::core::id::{Position, Time};

/// RFC 3339 in UTC with microseconds. A time no calendar has (from a damaged or hostile log) is shown as its
/// number.
#[must_use]
pub fn rfc3339(time: Time) -> String {
    match Timestamp::from_microsecond(time.0) {
        Ok(stamp) => format!("{stamp:.6}"),
        Err(_) => format!("{} microseconds since 1970", time.0),
    }
}

/// Now.
#[must_use]
pub fn now() -> Time {
    Time(Timestamp::now().as_microsecond())
}

/// How long ago, in the largest unit that says enough: `12s`, `5m`, `3h`, `2d`.
#[must_use]
pub fn age(time: Time, now: Time) -> String {
    let seconds = now.0.saturating_sub(time.0) / 1_000_000;
    match seconds {
        ..0 => "in the future".into(),
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// A place in the log, as given to `--at`, `--since` and `--until`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// A position.
    At(Position),
    /// A time.
    Time(Time),
}

impl When {
    /// Reads `120`, `#120`, an RFC 3339 time, or an age (`10m`, `2h`) counted back from `now`.
    #[must_use]
    pub fn parse(text: &str, now: Time) -> Option<Self> {
        let number = text.strip_prefix('#').unwrap_or(text);
        if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
            return number.parse().ok().map(|n| Self::At(Position(n)));
        }
        if let Some(micros) = micros(text) {
            return Some(Self::Time(Time(now.0.checked_sub(micros)?)));
        }
        let stamp: Timestamp = text.parse().ok()?;
        Some(Self::Time(Time(stamp.as_microsecond())))
    }
}

/// Reads a length of time: `90s`, `10m`, `2h`, `3d`, `2w`.
#[must_use]
pub fn micros(text: &str) -> Option<i64> {
    let unit = match text.bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        b'w' => 604_800,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(unit * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_microseconds() {
        assert_eq!(rfc3339(Time(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(
            rfc3339(Time(1_780_000_000_000_001)),
            "2026-05-28T20:26:40.000001Z"
        );
        assert_eq!(
            rfc3339(Time(i64::MAX)),
            format!("{} microseconds since 1970", i64::MAX)
        );
    }

    #[test]
    fn a_place_is_a_position_a_time_or_an_age() {
        let now = Time(1_000_000_000_000);
        let at = |text: &str| When::parse(text, now);
        assert_eq!(at("120"), Some(When::At(Position(120))));
        assert_eq!(at("#120"), Some(When::At(Position(120))));
        assert_eq!(at("10m"), Some(When::Time(Time(now.0 - 600_000_000))));
        assert_eq!(
            at("1970-01-01T00:00:01Z"),
            Some(When::Time(Time(1_000_000)))
        );
        assert_eq!(
            at("1970-01-01T01:00:01+01:00"),
            Some(When::Time(Time(1_000_000)))
        );
        for bad in [
            "",
            "#",
            "-1",
            "+1",
            "1.5",
            "m",
            "-2h",
            "10y",
            "yesterday",
            "99999999999999999999",
            "9999999999999w",
        ] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn ages_are_short() {
        let ago = |seconds: i64| age(Time(0), Time(seconds * 1_000_000));
        assert_eq!(
            [ago(5), ago(65), ago(7200), ago(200_000)],
            ["5s ago", "1m ago", "2h ago", "2d ago"]
        );
        assert_eq!(age(Time(5_000_000), Time(0)), "in the future");
    }
}
