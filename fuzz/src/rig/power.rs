//! Live power cuts: the file system below a store is shut down under its writers, and mounted again from what had reached
//! the disk.
//!
//! What must hold: every note that was acknowledged at any time is there, once, at the position that was said. The
//! shutdown is the `ioctl` of ext4 and XFS, on a file mounted through a loop device; that needs root.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::id::Name;
use tenure_projection::host::System;
use tenure_projection::store::{OpenOptions, Store};

use super::{Figures, Order, Outcome};
use crate::hammer::{Dice, Tally, judge, worker};

/// Writers at a time.
const WRITERS: u32 = 2;
/// A store is made anew after so many cuts, so that judging one stays short.
const CUTS_OF_ONE: u64 = 10;
/// The disk, in bytes: as small as either file system allows.
const DISK_BYTES: u64 = 320 << 20;
/// How long others may hold on to a mount that was given up.
const FREED_WITHIN: Duration = Duration::from_secs(60);
/// Where the control page says which boot it is of.
const BOOT_OFFSET: u64 = 8;
/// `EXT4_IOC_SHUTDOWN` and its twin of XFS; 2: what the journal has not written is lost.
const SHUTDOWN: &str = "import fcntl, os, struct, sys
directory = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(directory, 0x8004587D, struct.pack('I', 2))";

/// Has the system write the control page back at once, again and again, and not what is in the log: as it may at any time,
/// and seldom does. It ends with the file system.
const WRITE_BACK: &str = "import ctypes, os, sys, time
libc = ctypes.CDLL(None)
while not os.path.exists(sys.argv[1]): time.sleep(0.002)
page = os.open(sys.argv[1], os.O_RDWR)
while libc.sync_file_range(page, ctypes.c_int64(0), ctypes.c_int64(0), 7) == 0: pass";

/// Runs the rig.
///
/// # Errors
/// When a disk cannot be made or mounted.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let cuts = order.tier.of(2, 15, 1_000);
    let mut figures = Figures::default();
    let mut missing = Vec::new();
    for kind in ["ext4", "xfs"] {
        match Disk::new(kind) {
            Ok(disk) => cut_often(&disk, order, cuts, &mut figures)?,
            Err(why) => missing.push(format!("{kind}: {why}")),
        }
    }
    Ok(match missing.len() {
        2 => Outcome::Skipped(missing.join("; ")),
        _ => {
            for why in missing {
                eprintln!("SKIPPED power {why}");
            }
            Outcome::Ran(figures)
        }
    })
}

/// A file with a file system in it, and where it is mounted.
struct Disk {
    kind: &'static str,
    room: tempfile::TempDir,
    /// The loop device, the same for every mount: a store tells by its number that it was moved.
    device: String,
}

impl Disk {
    fn new(kind: &'static str) -> Result<Self, Box<dyn Error>> {
        let room = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let device = String::new();
        let mut disk = Self { kind, room, device };
        fs::create_dir(disk.mount_point())?;
        File::create(disk.image())?.set_len(DISK_BYTES)?;
        let quiet = if kind == "xfs" { "-q" } else { "-qF" };
        done(
            Command::new(format!("mkfs.{kind}"))
                .arg(quiet)
                .arg(disk.image()),
        )?;
        let looped = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(disk.image())
            .output()?;
        disk.device = String::from_utf8_lossy(&looped.stdout).trim().to_owned();
        disk.mount()?;
        disk.shut_down()?;
        disk.unmount()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.room.path().join("disk")
    }

    fn mount_point(&self) -> PathBuf {
        self.room.path().join("mounted")
    }

    /// Mounts it anew. While a mount namespace that somebody made meanwhile still has a copy of the mount, the system hands
    /// out the file system that was shut down: that is waited for.
    fn mount(&self) -> Result<(), Box<dyn Error>> {
        let mut left = FREED_WITHIN;
        loop {
            done(
                Command::new("mount")
                    .arg(&self.device)
                    .arg(self.mount_point()),
            )?;
            let probe = self.mount_point().join("probe");
            match File::create(&probe).and_then(|_| fs::remove_file(&probe)) {
                Ok(()) => return Ok(()),
                Err(error) if left.is_zero() => return Err(error.into()),
                Err(_) => {
                    self.unmount()?;
                    let pause = Duration::from_millis(100).min(left);
                    thread::sleep(pause);
                    left -= pause;
                }
            }
        }
    }

    fn unmount(&self) -> Result<(), Box<dyn Error>> {
        done(Command::new("umount").arg(self.mount_point()))
    }

    fn shut_down(&self) -> Result<(), Box<dyn Error>> {
        done(
            Command::new("python3")
                .args(["-c", SHUTDOWN])
                .arg(self.mount_point()),
        )
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It is mounted only where something failed.
        let _ = Command::new("umount")
            .arg("-q")
            .arg(self.mount_point())
            .stderr(Stdio::null())
            .status();
        let _ = Command::new("losetup")
            .args(["-d", &self.device])
            .stderr(Stdio::null())
            .status();
    }
}

fn done(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let ended = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Err(format!("{}: {said}", command.get_program().display()).into())
}

fn cut_often(
    disk: &Disk,
    order: &Order,
    cuts: u64,
    figures: &mut Figures,
) -> Result<(), Box<dyn Error>> {
    let (mut dice, mut tally) = (Dice::new(order.seed), Tally::default());
    let mut next_worker = 0;
    for cut in 0..cuts {
        let store = disk
            .mount_point()
            .join(format!("store{}", cut / CUTS_OF_ONE));
        if cut % CUTS_OF_ONE == 0 {
            tally = Tally::default();
        }
        disk.mount()?;
        if cut % CUTS_OF_ONE == 0 && cut > 0 {
            let before = cut / CUTS_OF_ONE - 1;
            fs::remove_dir_all(disk.mount_point().join(format!("store{before}")))?;
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            writers.push(Writer::start(&order.itself, &store, next_worker, &heard)?);
            next_worker += 1;
        }
        let mut write_back = None;
        if dice.roll(2) == 0 {
            figures.count("with the page ahead", 1);
            let page = store.join("control");
            let mut python = Command::new("python3");
            let python = python.args(["-c", WRITE_BACK]).arg(page);
            write_back = Some(python.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?);
        }
        thread::sleep(Duration::from_millis(60 + dice.roll(150)));
        disk.shut_down()?;
        if let Some(mut write_back) = write_back {
            // It may have ended, and else holds on to the mount.
            let _ = write_back.kill();
            write_back.wait()?;
        }
        writers.into_iter().try_for_each(Writer::end)?;
        disk.unmount()?;
        let heard = heard.lock().map_err(|_| "a listener panicked")?.clone();
        figures.count(&format!("cuts on {}", disk.kind), 1);
        figures.count("acknowledged", heard.len() as u64);
        tally.acknowledged.extend(heard);
        disk.mount()?;
        if store.join("segments").exists() {
            if cut % 2 == 0 {
                forget_boot(&store)?;
            }
            // By who only reads, and by who writes.
            let mut broken = judge(&store, &tally)?.violations;
            match go_on(&store) {
                Ok(()) => broken.extend(judge(&store, &tally)?.violations),
                Err(error) => broken.push(format!("nobody can write: {error}")),
            }
            let boot = if cut % 2 == 0 { "next" } else { "same" };
            let place = format!("{} cut {cut}, mounted in the {boot} boot", disk.kind);
            let named = broken.into_iter().map(|line| format!("{place}: {line}"));
            figures.violations.extend(named);
        } else if !tally.acknowledged.is_empty() {
            let line = format!("{} cut {cut}: the store is gone", disk.kind);
            figures.violations.push(line);
        }
        disk.unmount()?;
    }
    Ok(())
}

/// Makes the control page one of an earlier boot, as it is after the power was really cut.
fn forget_boot(store: &Path) -> Result<(), Box<dyn Error>> {
    let page = store.join("control");
    if page.exists() {
        let page = File::options().write(true).open(page)?;
        page.write_all_at(&[0xee; 16], BOOT_OFFSET)?;
    }
    Ok(())
}

/// Opens the store for writing, and appends.
fn go_on(store: &Path) -> Result<(), Box<dyn Error>> {
    let host = Arc::new(System::of_this_user());
    let store = Store::open(&OpenOptions::new(store), host)?;
    let verb = Verb::Register {
        name: Name::parse(&format!(
            "after-{}",
            store.view(|state| state.at.position.0)?
        ))?,
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    store.execute(Call::new(verb).by("power")).map(drop)?;
    Ok(())
}

/// A process that writes notes and says what was acknowledged.
struct Writer {
    child: Child,
    listener: thread::JoinHandle<()>,
}

impl Writer {
    fn start(
        program: &Path,
        store: &Path,
        number: u32,
        heard: &Arc<Mutex<Vec<(u64, u64)>>>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(program)
            .env(worker::ORDER, worker::order(store, number, 2))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        let heard = heard.clone();
        let listener = thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                if let ["ack", note, position] = words[..]
                    && let (Ok(note), Ok(position)) = (note.parse(), position.parse())
                    && let Ok(mut heard) = heard.lock()
                {
                    heard.push((note, position));
                }
            }
        });
        Ok(Self { child, listener })
    }

    /// What it said up to its end was said.
    fn end(mut self) -> Result<(), Box<dyn Error>> {
        self.child.kill()?;
        self.child.wait()?;
        self.listener
            .join()
            .map_err(|_| "a listener panicked".into())
    }
}
