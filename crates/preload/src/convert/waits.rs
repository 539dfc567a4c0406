//! How long converted locks were waited for: what gets worse when an algorithm is less fair.
//!
//! Only waits are recorded, in one row per thread, kind and mode, so an uncontended acquisition costs
//! nothing more than the algorithm.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::clock;
use relatch_record::writer::{add, count_ticks, raise};

use crate::session;
use crate::thread::{self, What};

/// Times `wait`, which acquires a converted lock that was found taken, and says whether it did.
#[cold]
pub fn timed(kind: u8, mode: u8, wait: impl FnOnce() -> bool) -> bool {
    let (Some(thread), Some(writer)) = (thread::current(), session::writer()) else {
        return wait();
    };
    let clock = writer.header().clock;
    let from = clock::ticks(clock);
    let acquired = wait();
    let ticks = clock::ticks(clock).saturating_sub(from);
    if let Some(row) = thread.row(writer, What { class: 0, site: 0, mode, kind, lock: 0 }) {
        if acquired {
            add(&row.acquisitions, 1);
            add(&row.contended, 1);
            count_ticks(writer, &row.wait_page, ticks, 1);
        } else {
            add(&row.rejected, 1);
        }
        add(&row.wait, ticks);
        raise(&row.wait_max, ticks);
    }
    debug_assert!(writer.header().threads.load(Relaxed) > 0);
    acquired
}
