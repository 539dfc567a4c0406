//! What one uncontended pair of acquire and release costs, each lock beside glibc's.
//!
//! Every sample times 200 000 pairs; locks take turns, so that a slow moment of the machine hits
//! all alike; the median of 41 samples is printed, with the quartiles.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::time::Instant;

use relatch::{ParkMutex, QrwLock, RawMutex, RawRwLock, RwSem, Ttas};

const PAIRS: u32 = 200_000;
const SAMPLES: usize = 41;

/// glibc's locks, as the C library initialises them statically.
struct Glibc<T>(UnsafeCell<T>);

// SAFETY: pthread objects are made to be shared.
unsafe impl<T> Sync for Glibc<T> {}

static MUTEX: Glibc<libc::pthread_mutex_t> =
    Glibc(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static RWLOCK: Glibc<libc::pthread_rwlock_t> =
    Glibc(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER));
static SPIN: Glibc<libc::pthread_spinlock_t> = Glibc(UnsafeCell::new(1));

static TTAS: Ttas = Ttas::new();
static PARK: ParkMutex = ParkMutex::new();
static QRW: QrwLock = QrwLock::new();
static SEM: RwSem = RwSem::new();

macro_rules! pair {
    ($name:expr, $($call:expr),+) => {
        ($name, {
            fn run() {
                for _ in 0..PAIRS {
                    // SAFETY: static, initialised; every release follows its acquisition.
                    unsafe { $($call);+ };
                }
            }
            run as fn()
        })
    };
}

fn main() {
    use libc::{pthread_mutex_lock, pthread_mutex_unlock, pthread_spin_lock, pthread_spin_unlock};
    use libc::{pthread_rwlock_rdlock, pthread_rwlock_unlock, pthread_rwlock_wrlock};

    // glibc's mutex skips the atomic operations while the process has one thread.
    std::thread::spawn(|| ()).join().expect("does nothing");
    let _second = std::thread::spawn(std::thread::park);

    let pairs = [
        pair!(
            "pthread mutex",
            pthread_mutex_lock(MUTEX.0.get()),
            pthread_mutex_unlock(MUTEX.0.get())
        ),
        pair!("mutex", black_box(&PARK).lock(), black_box(&PARK).unlock()),
        pair!("pthread spin", pthread_spin_lock(SPIN.0.get()), pthread_spin_unlock(SPIN.0.get())),
        pair!("ttas", black_box(&TTAS).lock(), black_box(&TTAS).unlock()),
        pair!(
            "pthread rdlock",
            pthread_rwlock_rdlock(RWLOCK.0.get()),
            pthread_rwlock_unlock(RWLOCK.0.get())
        ),
        pair!("qrwlock read", black_box(&QRW).read(), black_box(&QRW).read_unlock()),
        pair!("rwsem read", black_box(&SEM).read(), black_box(&SEM).read_unlock()),
        pair!(
            "pthread wrlock",
            pthread_rwlock_wrlock(RWLOCK.0.get()),
            pthread_rwlock_unlock(RWLOCK.0.get())
        ),
        pair!("qrwlock write", black_box(&QRW).write(), black_box(&QRW).write_unlock()),
        pair!("rwsem write", black_box(&SEM).write(), black_box(&SEM).write_unlock()),
    ];
    let mut samples = vec![Vec::new(); pairs.len()];
    for _ in 0..SAMPLES {
        for (index, (_, run)) in pairs.iter().enumerate() {
            let start = Instant::now();
            run();
            samples[index].push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
        }
    }
    println!("{:16} {:>8} {:>18}", "ns per pair", "median", "quartiles");
    for ((name, _), mut samples) in pairs.into_iter().zip(samples) {
        samples.sort_by(f64::total_cmp);
        let at = |share: usize| samples[(SAMPLES - 1) * share / 4];
        println!("{name:16} {:8.2} {:8.2} -{:8.2}", at(2), at(1), at(3));
    }
}
