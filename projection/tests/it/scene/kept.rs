//! Scenes written down, for the core's own test of its decisions: `TENURE_SCENES=DIR` leaves the log of every scene
//! there (see `core/tests/it/decisions.rs`).

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::codec::v1;
use tenure_log::frame::{Frame, Parts};
use tenure_projection::entry;

use super::Scene;

/// Longer logs are about limits of size, not about rules.
const BYTES_MAX: usize = 1 << 16;

static SCENES: AtomicU32 = AtomicU32::new(0);

impl Drop for Scene {
    fn drop(&mut self) {
        let Some(dir) = std::env::var_os("TENURE_SCENES").map(PathBuf::from) else {
            return;
        };
        if std::thread::panicking() {
            return;
        }
        let mut bytes = Vec::new();
        for frame in self.all() {
            let again = without_chance(&frame);
            let parts = [&again.facts, &again.texts, &again.bodies];
            for part in parts {
                let length = u32::try_from(part.len()).expect("a part is short");
                bytes.extend_from_slice(&length.to_le_bytes());
            }
            bytes.extend_from_slice(&frame.header.incarnation.0.to_le_bytes());
            bytes.extend_from_slice(&frame.header.position.0.to_le_bytes());
            bytes.extend_from_slice(&frame.header.time.0.to_le_bytes());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
        }
        if bytes.is_empty() || bytes.len() > BYTES_MAX {
            return;
        }
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("scene").replace("::", ".");
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let file = std::fs::File::create(dir.join(format!("{test}-{number:04}")));
        file.and_then(|mut file| file.write_all(&bytes))
            .expect("the scene is written");
    }
}

/// The same parts with zeros for the random bytes, so that scenes that begin alike have equal frames. What does not
/// decode is kept as it is.
fn without_chance(frame: &Frame) -> Parts {
    let lent = entry::lend(frame);
    let again = match (entry::decode(&lent), entry::decode_request(&lent)) {
        (Ok(entry), Ok(request)) if entry.unknown.is_none() => {
            v1::encode(&entry.fence, &request, &entry.events, || {
                [0; v1::NONCE_BYTES]
            })
            .ok()
        }
        _ => None,
    };
    again.map_or_else(
        || frame.parts.clone(),
        |parts| Parts {
            facts: parts.facts,
            texts: parts.texts,
            bodies: parts.bodies,
        },
    )
}
