//! What the rules cost without a log: deciding, folding, and the bytes of facts and states.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tenure_benches::ours::Story;
use tenure_benches::workload::Act;
use tenure_core::apply::apply;
use tenure_core::codec::{self, v1};
use tenure_core::decide::decide;
use tenure_core::state::State;
use tenure_log::frame::Frame;
use tenure_projection::entry;

/// Sessions of the story that is folded.
const SEATS: usize = 1_000;
/// Steps of the story that is folded.
const STEPS: usize = 20_000;

fn deciding(c: &mut Criterion, story: &Story) {
    let mut group = c.benchmark_group("decide");
    for act in [
        "note", "record", "report", "dispatch", "accept", "adopt", "late",
    ] {
        let Some((state, request)) = story.scene(|step| word(step) == act) else {
            continue;
        };
        group.bench_function(act, |b| {
            b.iter(|| decide(black_box(&state), black_box(&request)))
        });
    }
    group.finish();
}

fn word(act: Act) -> &'static str {
    match act {
        Act::Adopt => "adopt",
        Act::Dispatch { .. } => "dispatch",
        Act::Accept => "accept",
        Act::Report => "report",
        Act::Note => "note",
        Act::Record => "record",
        Act::Late => "late",
    }
}

fn frames(c: &mut Criterion, story: &Story) {
    let frames: &[Frame] = &story.frames;
    let entries: Vec<_> = frames
        .iter()
        .map(|f| entry::decode(&f.by_ref()).expect("the frame is good"))
        .collect();
    let requests: Vec<_> = frames
        .iter()
        .map(|f| entry::decode_request(&f.by_ref()).expect("the frame is good"))
        .collect();
    let mut group = c.benchmark_group("facts");
    group.throughput(Throughput::Elements(frames.len() as u64));
    group.bench_function("decode_entry", |b| {
        b.iter(|| {
            frames
                .iter()
                .map(|f| entry::decode(&f.by_ref()))
                .filter(Result::is_ok)
                .count()
        });
    });
    group.bench_function("decode_fence", |b| {
        let fence = |f: &&Frame| v1::decode_fence(&f.parts.facts, 1).is_ok();
        b.iter(|| frames.iter().filter(fence).count());
    });
    group.bench_function("decode_request", |b| {
        b.iter(|| {
            frames
                .iter()
                .map(|f| entry::decode_request(&f.by_ref()))
                .filter(Result::is_ok)
                .count()
        });
    });
    group.bench_function("encode", |b| {
        b.iter(|| {
            let encode = |(e, r): (&tenure_core::event::Entry, &_)| {
                v1::encode(&e.fence, r, &e.events, || [7; v1::NONCE_BYTES]).is_ok()
            };
            entries
                .iter()
                .zip(&requests)
                .map(encode)
                .filter(|good| *good)
                .count()
        });
    });
    group.bench_function("apply", |b| {
        b.iter_batched_ref(
            State::new,
            |state| {
                for entry in &entries {
                    apply(state, entry);
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn states(c: &mut Criterion, story: &Story) {
    let state = story.state();
    let bytes = codec::encode(&state).expect("a state encodes");
    let mut group = c.benchmark_group("state");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("encode", |b| b.iter(|| codec::encode(black_box(&state))));
    group.bench_function("decode", |b| {
        b.iter(|| codec::decode::<State>(black_box(&bytes)))
    });
    group.finish();
}

fn rules(c: &mut Criterion) {
    let story = Story::new(SEATS, STEPS);
    deciding(c, &story);
    frames(c, &story);
    states(c, &story);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = rules
}
criterion_main!(benches);
