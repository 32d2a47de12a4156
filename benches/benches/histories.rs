//! What a record and a branch cost on a history of 10 records and on one of 100,000: the same.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tenure_benches::ours;
use tenure_benches::workload::{Act, Bodies, Random, SEED};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::id::Name;
use tenure_projection::session::Session;
use tenure_projection::store::Store;

/// Records that share one write and one sync while a history is made.
const TOGETHER: usize = 256;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// A turn as long as those of the workload.
fn record(random: &mut Random) -> Verb {
    let bytes = Bodies::Mixed.bytes(Act::Record, random.draw());
    Verb::Record {
        kind: "turn".into(),
        body: random.text(bytes),
        expect: None,
        opens: None,
        closes: None,
    }
}

/// A store whose session `api` has so many records.
fn filled(dir: &Path, random: &mut Random, records: usize) -> (Store, Session) {
    let store = ours::open(dir);
    let session = Session::register(&store, &name("api")).expect("the name is free");
    let mut left = records;
    while left > 0 {
        let count = left.min(TOGETHER);
        let pending: Vec<_> = (0..count)
            .map(|_| session.submit(record(random)).expect("it is taken"))
            .collect();
        for one in pending {
            one.wait().expect("it is recorded");
        }
        left -= count;
    }
    (store, session)
}

fn branch(dest: &str) -> Call {
    Call::new(Verb::Branch {
        source: name("api"),
        name: name(dest),
        at: None,
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
        in_tree: false,
    })
}

fn histories(c: &mut Criterion) {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut random = Random::new(SEED);
    let mut group = c.benchmark_group("history");
    for records in [10, 100_000] {
        let dir = scratch.path().join(records.to_string());
        let (store, session) = filled(&dir, &mut random, records);
        group.bench_function(format!("record/{records}"), |b| {
            b.iter(|| session.call(record(&mut random)).expect("it is recorded"));
        });
        let mut made = 0_u64;
        group.bench_function(format!("branch/{records}"), |b| {
            b.iter(|| {
                made += 1;
                store
                    .execute(branch(&format!("new{made}")))
                    .expect("the name is free")
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = histories
}
criterion_main!(benches);
