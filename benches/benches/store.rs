//! What a store costs: appending through memory and through a directory, replaying, and opening.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tenure_benches::ours;
use tenure_benches::workload::{Crew, SEED};
use tenure_log::journal::memory::MemoryLog;
use tenure_projection::reader::Reader;
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

fn reading(c: &mut Criterion, dir: &Path) {
    let store = ours::open(dir);
    let mut crew = Crew::new(SEED, 0, SEATS);
    ours::register(&store, &crew);
    ours::fill(&store, &mut crew, STEPS);
    drop(store);
    let host = ours::host(dir);
    let open = |path: &Path| {
        let reader = Reader::open(path, host.clone()).expect("the store is readable");
        reader
            .view(|state| state.sessions.len())
            .expect("the state is readable")
    };
    let place = dir.join("store");
    let mut group = c.benchmark_group("open");
    group.bench_function("snapshot and tail", |b| b.iter(|| open(&place)));
    std::fs::remove_dir_all(place.join("snapshots")).expect("snapshots can be removed");
    group.throughput(Throughput::Elements((SEATS + STEPS) as u64));
    group.bench_function("replay", |b| b.iter(|| open(&place)));
    std::fs::remove_file(place.join("control")).expect("the control page can be removed");
    group.bench_function("replay without a control page", |b| b.iter(|| open(&place)));
    group.finish();
}

fn store(c: &mut Criterion) {
    let scratch = tempfile::tempdir().expect("a directory");
    appending(c, &scratch.path().join("a"));
    reading(c, &scratch.path().join("r"));
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
