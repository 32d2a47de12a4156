//! Bytes: every form of damage at every place, and arbitrary ones.

use proptest::prelude::*;
use tenure_projection::transcript::{DEPTH_MAX, Kind, read, separate};

use super::{Drops, accounted, claude, reading, taken, told};

/// B01, B05, B06, B08, B10, B13, B15, B16: each form of damage is named with its place, what is healthy is none, and the
/// records around are there.
#[test]
fn damage_is_named_and_what_is_healthy_is_not() {
    let a = claude("a", "-", "u");
    let b = claude("b", "a", "a");
    let (la, lb) = (a.len(), b.len());
    let cases: Vec<(&str, Vec<u8>, usize, String)> = vec![
        ("nothing", vec![], 0, String::new()),
        ("healthy", format!("{a}\n{b}\n").into(), 2, String::new()),
        (
            "no end of the last line",
            format!("{a}\n{b}").into(),
            2,
            "no-line-end".into(),
        ),
        (
            "windows",
            format!("{a}\r\n{b}\r\n").into(),
            2,
            "crlf".into(),
        ),
        (
            "blank lines",
            format!("\n{a}\n\n \n{b}\n").into(),
            2,
            "blank-line".into(),
        ),
        (
            "mark",
            format!("\u{feff}{a}\n{b}\n").into(),
            2,
            "bom".into(),
        ),
        (
            "mark inside",
            format!("{a}\n\u{feff}{b}\n").into(),
            2,
            format!("stray-bom@{}+3", la + 1),
        ),
        (
            "mark in a text",
            a.replace("ask", "\u{feff}").into(),
            1,
            "no-line-end".into(),
        ),
        (
            "separators in a text",
            a.replace("ask", "\u{2028}\u{2029}\u{85}").into(),
            1,
            "no-line-end odd-separator".into(),
        ),
        (
            "half of an emoji",
            format!("{}\n", a.replace("ask", r"x\ud83d")).into(),
            1,
            format!(
                "lone-surrogate@{}+6",
                a.find("ask").expect("it is there") + 1
            ),
        ),
        (
            "a whole emoji",
            format!("{}\n", a.replace("ask", r"\ud83d\ude00")).into(),
            1,
            String::new(),
        ),
        (
            "the other half",
            format!("{}\n", a.replace("ask", r"\ude00")).into(),
            1,
            format!("lone-surrogate@{}+6", a.find("ask").expect("it is there")),
        ),
        (
            "no text",
            [
                &a.as_bytes()[..a.find("ask").expect("it is there")],
                b"\xff",
                &a.as_bytes()[a.find("ask").expect("it is there")..],
                b"\n",
            ]
            .concat(),
            1,
            format!("invalid-utf8@{}+1", a.find("ask").expect("it is there")),
        ),
        (
            "zeros between",
            [a.as_bytes(), b"\n", &[0; 300], b"\n", b.as_bytes(), b"\n"].concat(),
            2,
            format!("nul-block@{}+300", la + 1),
        ),
        (
            "zeros before a record",
            [a.as_bytes(), b"\n", &[0; 9], b.as_bytes(), b"\n"].concat(),
            2,
            format!("nul-block@{}+9 glued-line@{}+0", la + 1, la + 10),
        ),
        (
            "zeros inside",
            [
                &a.as_bytes()[..40],
                &[0; 9],
                &a.as_bytes()[49..],
                b"\n",
                b.as_bytes(),
                b"\n",
            ]
            .concat(),
            1,
            format!(
                "torn-line@0+40 nul-block@40+9 not-json@49+{} dangling-id@{}+{lb}",
                la - 49,
                la + 1
            ),
        ),
        (
            "half a record, a blank line, the record",
            format!("{}\n\n{a}\n", &a[..50]).into(),
            1,
            "torn-line@0+50 blank-line".into(),
        ),
        (
            "a fragment that is not the beginning",
            format!("{}\n{a}\n", &b[9..]).into(),
            1,
            format!("not-json@0+{}", lb - 9),
        ),
        (
            "two on a line",
            format!("{a}{b}\n").into(),
            2,
            format!("glued-line@{la}+0"),
        ),
        ("a value", b"42\n".to_vec(), 0, "not-json@0+2".into()),
        (
            "a list",
            b"[{\"type\":\"user\",\"uuid\":\"a\"}]\n".to_vec(),
            0,
            "not-json@0+28".into(),
        ),
        (
            "rubbish behind",
            format!("{a}}}\n").into(),
            1,
            format!("not-json@{la}+1"),
        ),
    ];
    for (name, bytes, records, findings) in cases {
        let (reading, branches) = taken(&bytes);
        assert_eq!(reading.records.len(), records, "{name}");
        assert_eq!(
            told(&branches.findings.and(&reading.findings)),
            findings,
            "{name}"
        );
    }
}

/// B05: what a line holds behind a torn record is found wherever the record was torn, unless an object may stand there:
/// then nothing is guessed.
#[test]
fn a_record_behind_a_torn_one_is_found_wherever_it_was_torn() {
    let torn = claude("torn", "a", "a7").replace("say", r#"\"{\"quoted\": [\\ \u00e9 é 😀 "#);
    let whole = claude("b", "-", "u");
    let mut kept_whole = 0;
    for cut in 1..torn.len() {
        let begun = &torn.as_bytes()[..cut];
        let bytes = [begun, whole.as_bytes(), b"\n"].concat();
        let (reading, _) = taken(&bytes);
        if value_may_follow(begun) {
            kept_whole += 1;
            assert_eq!(
                told(&reading.findings),
                format!("torn-line@0+{}", bytes.len() - 1)
            );
            continue;
        }
        assert_eq!(reading.records.len(), 1, "cut at {cut}");
        assert_eq!(reading.records[0].span.offset, cut as u64);
        let found = told(&reading.findings);
        assert_eq!(
            found,
            format!("torn-line@0+{cut} glued-line@{cut}+0"),
            "cut at {cut}"
        );
    }
    assert!(kept_whole > 5, "there are such places");
}

/// Whether an object may stand behind these bytes: behind a colon, or behind `[` or a comma in a list.
fn value_may_follow(begun: &[u8]) -> bool {
    let (mut lists, mut inside, mut escaped, mut last) = (Vec::new(), false, false, b' ');
    for byte in begun {
        match (inside, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => inside = !inside,
            (true, _) => {}
            (false, b'{') => lists.push(false),
            (false, b'[') => lists.push(true),
            (false, b'}' | b']') => drop(lists.pop()),
            (false, _) => {}
        }
        last = *byte;
    }
    let in_list = lists.last() == Some(&true);
    !inside && (last == b':' || (in_list && matches!(last, b'[' | b',')))
}

/// B04, B15, B28: a last record that is cut anywhere costs itself and nothing else, inside of a character too.
#[test]
fn a_last_record_cut_anywhere_costs_itself() {
    let first = format!("{}\n", claude("a", "-", "u"));
    let last = claude("b", "a", "a").replace("say", "😀é\u{2028}");
    for cut in 0..=last.len() {
        let bytes = [first.as_bytes(), &last.as_bytes()[..cut]].concat();
        let (reading, _) = taken(&bytes);
        let (records, findings) = match cut {
            0 => (1, String::new()),
            whole if whole == last.len() => (2, "no-line-end odd-separator".to_owned()),
            _ => (1, format!("torn-tail@{}+{cut}", first.len())),
        };
        assert_eq!(reading.records.len(), records, "cut at {cut}");
        assert_eq!(told(&reading.findings), findings, "cut at {cut}");
    }
}

/// B11: neither a long line nor many records are a fault; only depth has a limit.
#[test]
fn size_is_no_fault() {
    let long = claude("a", "-", "u").replace("ask", &"x".repeat(20 << 20));
    let (reading, _) = taken(format!("{long}\n").as_bytes());
    assert_eq!(
        (reading.records.len(), told(&reading.findings)),
        (1, String::new())
    );
    let deep = |levels: usize| {
        let lists = format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        format!("{{\"type\":\"user\",\"uuid\":\"a\",\"x\":{lists}}}\n")
    };
    assert_eq!(told(&reading_of(&deep(DEPTH_MAX))), "");
    let too_deep = deep(DEPTH_MAX + 1);
    assert_eq!(
        told(&reading_of(&too_deep)),
        format!("not-json@0+{}", too_deep.len() - 1)
    );
}

fn reading_of(text: &str) -> tenure_projection::transcript::Findings {
    taken(text.as_bytes()).0.findings
}

/// Faults are listed up to a number, and counted beyond it.
#[test]
fn a_thousand_faults_of_a_kind_are_listed_and_all_are_counted() {
    let reading = reading("x\n".repeat(1500).as_bytes());
    assert_eq!(reading.findings.count(Kind::NotJson), 1500);
    assert_eq!(reading.findings.listed().len(), 1000);
    assert_eq!(reading.findings.faults(), 1500);
}

/// Pieces of which transcripts and their damage are made.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let record = |id: &str, parent: &str, what: &str| claude(id, parent, what).into_bytes();
    let piece = prop_oneof![
        Just(record("a", "-", "u")),
        Just(record("b", "a", "a")),
        Just(record("c", "a", "u")),
        Just(record("d", "d", "u")),
        Just(record("e", "gone", "a")),
        Just(record("f", "c", "sa")),
        Just(super::codex(Some(3), "event_msg", Some("t"), "x").into_bytes()),
        Just(br#"{"$rewindTo":"a"}"#.to_vec()),
        Just(br#"{"type":"mode","sessionId":"s"}"#.to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(vec![0; 3]),
        Just(b"{\"".to_vec()),
        Just(b"\\ud83d".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let piece =
        (piece, any::<prop::sample::Index>(), 0..4_u8).prop_map(|(bytes, cut, how)| match how {
            0 if !bytes.is_empty() => bytes[..cut.index(bytes.len())].to_vec(),
            _ => bytes,
        });
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// C6: arbitrary bytes: nothing panics, every byte is counted once, and it does not matter in which portions they come.
    #[test]
    fn every_byte_is_accounted_for(
        bytes in prop_oneof![pieces(), proptest::collection::vec(any::<u8>(), 0..200)],
        drop in 1_usize..9,
    ) {
        let (whole, _) = taken(&bytes);
        let drops = read(Drops(&bytes, drop), None, |_| {}).expect("it reads");
        prop_assert_eq!(told(&drops.findings), told(&whole.findings));
        prop_assert_eq!(drops.digest, whole.digest);
        let spans = |r: &tenure_projection::transcript::Reading| r.records.iter().map(|r| r.span).collect::<Vec<_>>();
        prop_assert_eq!(spans(&drops), spans(&whole));
        for host in tenure_projection::transcript::Host::ALL {
            let as_asked = read(&bytes[..], Some(*host), |_| {}).expect("it reads");
            accounted(&bytes, &as_asked, &separate(&as_asked));
        }
    }
}
