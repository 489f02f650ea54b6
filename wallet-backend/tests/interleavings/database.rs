//! A store as one on an SQL server is to the combiner: each batch runs on a thread of its own, beside the others, and
//! has its lanes to itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::account::{AccountId, RequestId};
use crate::command::{AccountView, HoldView, LedgerError, PastView, RequestView, Work};
use crate::store::memory::Memory;
use crate::store::{
    Cursor, Cut, EntryPage, EventCursor, EventPage, GeneralLedger, HandOver, Job, Moment, Store,
};
use crate::sync::{Runtime, switch, thread};

/// Clones are the same database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    model: Arc<Memory>,
    under_way: Arc<Mutex<UnderWay>>,
}

/// Never locked at a point where others may go on.
#[derive(Debug, Default)]
struct UnderWay {
    jobs: usize,
    /// How many of these each lane has.
    lanes: HashMap<AccountId, usize>,
    /// What the combiner must not do, and did.
    fault: Option<&'static str>,
}

impl Database {
    pub(crate) fn check(&self) {
        assert_eq!(self.under_way.lock().unwrap().fault, None);
    }
}

impl UnderWay {
    fn begin(&mut self, jobs: &[Job]) {
        self.jobs += jobs.len();
        let mut lanes = HashMap::new();
        for lane in jobs.iter().filter_map(lane) {
            *lanes.entry(lane).or_insert(0) += 1;
        }
        for (lane, jobs) in lanes {
            if self.lanes.insert(lane, jobs).is_some() {
                self.fault = Some("two batches had jobs of one lane");
            }
        }
    }

    fn close(&mut self) {
        if self.jobs > 0 {
            self.fault = Some("it was closed with jobs under way");
        }
    }

    /// The job is answered next.
    fn end(&mut self, job: &Job) {
        self.jobs -= 1;
        if let Some(lane) = lane(job) {
            let left = self.lanes.remove(&lane).unwrap_or(0);
            if left > 1 {
                self.lanes.insert(lane, left - 1);
            }
        }
    }
}

impl Store for Database {
    async fn run(&self, jobs: Vec<Job>) {
        self.under_way.lock().unwrap().begin(&jobs);
        let (model, under_way) = (Arc::clone(&self.model), Arc::clone(&self.under_way));
        thread::spawn(move || {
            for job in jobs {
                switch();
                under_way.lock().unwrap().end(&job);
                Runtime::new().unwrap().block_on(model.run(vec![job]));
            }
        });
    }

    fn handing_over(&self) -> HandOver {
        HandOver::OneBatchAtATime
    }

    as_the_model!(model);

    async fn close(&self) {
        self.under_way.lock().unwrap().close();
        self.model.close().await;
    }
}

fn lane(job: &Job) -> Option<AccountId> {
    match &job.work {
        Work::Task(task) => Some(task.account().clone()),
        Work::Batch(_) => None,
    }
}
