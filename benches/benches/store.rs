//! What a store costs: appending through memory and through a directory, replaying, opening, verifying, and
//! asking who held a session.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tenure_benches::workload::{Crew, SEED};
use tenure_benches::{ours, reading};
use tenure_core::id::Position;
use tenure_log::journal::memory::MemoryLog;
use tenure_projection::store::{RULES, Store};

/// Sessions that are acted for.
const SEATS: usize = 1_000;
/// Steps of the log that is read.
const STEPS: usize = 50_000;
/// Steps that share one write and one sync in a batch.
const TOGETHER: usize = 100;

fn appending(c: &mut Criterion, dir: &Path) {
    let memory = Store::over(std::sync::Arc::new(MemoryLog::new(RULES)), ours::host(dir));
    let stores = [
        ("memory", memory.expect("an empty log opens")),
        ("directory", ours::open(&dir.join("append"))),
    ];
    let mut group = c.benchmark_group("append");
    for (kind, store) in stores {
        let mut crew = Crew::new(SEED, 0, SEATS);
        ours::register(&store, &crew);
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{kind}/one at a time"), |b| {
            b.iter(|| ours::play(&store, &mut crew));
        });
        group.throughput(Throughput::Elements(TOGETHER as u64));
        group.bench_function(format!("{kind}/{TOGETHER} together"), |b| {
            b.iter(|| ours::fill(&store, &mut crew, TOGETHER));
        });
    }
    group.finish();
}

fn reads(c: &mut Criterion, dir: &Path) {
    let mut crew = Crew::new(SEED, 0, SEATS);
    reading::build(dir, &mut crew, STEPS, 0);
    let frames = reading::open(dir);
    let seat = &crew.seats[SEATS / 2];
    let mut group = c.benchmark_group("open");
    group.bench_function("snapshot", |b| b.iter(|| reading::open(dir)));
    group.bench_function("check", |b| {
        b.iter(|| reading::check(dir, &seat.name, seat.generation));
    });
    let reader = reading::reader(dir);
    let session = reading::session(&reader, &seat.name);
    let middle = Position(frames / 2);
    group.bench_function("who --at", |b| {
        b.iter(|| reading::was_held(&reader, session, middle));
    });
    group.finish();
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(frames));
    group.bench_function("checksums", |b| b.iter(|| reading::checksums(dir)));
    group.bench_function("fences", |b| b.iter(|| reading::fences(dir)));
    group.bench_function("verify", |b| b.iter(|| reading::verified(dir)));
    let aside = reading::Aside::put(dir).expect("snapshots can be moved");
    group.bench_function("state", |b| b.iter(|| reading::open(dir)));
    let control = dir.join("store/control");
    std::fs::remove_file(control).expect("the control page can be removed");
    group.bench_function("state without a control page", |b| {
        b.iter(|| reading::open(dir))
    });
    group.finish();
    aside.put_back().expect("snapshots can be moved back");
}

fn store(c: &mut Criterion) {
    let scratch = tempfile::tempdir().expect("a directory");
    appending(c, &scratch.path().join("a"));
    reads(c, &scratch.path().join("r"));
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = store
}
criterion_main!(benches);
