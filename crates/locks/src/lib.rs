//! Locks over one [`Platform`](platform::Platform) trait: the same source runs on the machine,
//! under a model checker and in a simulator.
//!
//! | algorithm | type | bytes | modes | waiting | who is next |
//! |---|---|---|---|---|---|
//! | `ttas` | [`Ttas`] | 4 | exclusive | spins, later yields and naps | anyone |
//! | `mutex` | [`ParkMutex`] | 4 | exclusive | spins, then sleeps | anyone; sleepers are woken in turn |
//! | `qrwlock` | [`QrwLock`] | 8 | both | spins, then sleeps | the longest waiting |
//! | `rwsem` | [`RwSem`] | 16 | both | spins, then sleeps | anyone for 4 ms, then the waiting writers; all waiting readers after a writer |
//!
//! Each of them is free when all its bytes are zero, needs no destructor, never allocates and knows
//! nothing of threads beyond those inside a call, so it can live in memory that is cleared and used
//! again. After the store that releases it, an unlocking thread touches the lock's memory no more:
//! whoever acquires it next may free it at once.
//!
//! # Use
//! ```
//! use relatch::{Mutex, QrwLock, RwLock};
//!
//! let hits = Mutex::new(0u64);
//! *hits.lock() += 1;
//! assert_eq!(*hits.lock(), 1);
//!
//! // The lock is a type parameter: any algorithm that knows both modes will do.
//! let names = RwLock::with_raw(QrwLock::new(), vec!["a"]);
//! {
//!     let (one, two) = (names.read(), names.read());
//!     assert_eq!(one.len(), two.len());
//! }
//! let mut writing = names.write();
//! writing.push("b");
//! let reading = writing.downgrade();
//! assert_eq!(reading.len(), 2);
//! ```

mod guard;
mod mutex;
pub mod platform;
mod qrwlock;
mod raw;
mod rwsem;
mod ttas;
mod wait_lock;

pub use guard::{Mutex, MutexGuard, ReadGuard, RwLock, WriteGuard};
pub use mutex::ParkMutex;
pub use platform::{Clock, Deadline, Native};
pub use qrwlock::QrwLock;
pub use raw::{Exclusive, RawMutex, RawRwLock, ZeroIsFree};
pub use rwsem::RwSem;
pub use ttas::Ttas;
