//! x
use std::time::Instant;
use tenure_benches::{ours, workload::*};
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let seats: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let t = Instant::now();
    let store = ours::open(&dir);
    let mut crew = Crew::new(SEED, 0, seats);
    ours::register(&store, &crew);
    println!("registered {:?}", t.elapsed());
    ours::fill(&store, &mut crew, n);
    println!("filled {:?} head {:?}", t.elapsed(), store.head().unwrap());
    drop(store);
    for _ in 0..3 {
        let t = Instant::now();
        let r =
            tenure_projection::reader::Reader::open(&dir.join("store"), ours::host(&dir)).unwrap();
        let t1 = t.elapsed();
        let s = r.view(|s| s.sessions.len()).unwrap();
        println!("open {t1:?} view {:?} {s}", t.elapsed());
    }
    std::fs::rename(dir.join("store/snapshots/state"), dir.join("snap")).unwrap();
    for _ in 0..3 {
        let t = Instant::now();
        let r =
            tenure_projection::reader::Reader::open(&dir.join("store"), ours::host(&dir)).unwrap();
        println!("replay open {:?}", t.elapsed());
        drop(r);
        println!("replay drop {:?}", t.elapsed());
    }
    std::fs::rename(dir.join("store/control"), dir.join("control")).unwrap();
    let t = Instant::now();
    let r = tenure_projection::reader::Reader::open(&dir.join("store"), ours::host(&dir)).unwrap();
    println!("replay open without control {:?}", t.elapsed());
    drop(r);
    std::fs::rename(dir.join("snap"), dir.join("store/snapshots/state")).unwrap();
    for _ in 0..3 {
        let t = Instant::now();
        let r =
            tenure_projection::reader::Reader::open(&dir.join("store"), ours::host(&dir)).unwrap();
        println!("snapshot open without control {:?}", t.elapsed());
        drop(r);
    }
    std::fs::rename(dir.join("control"), dir.join("store/control")).unwrap();
}
