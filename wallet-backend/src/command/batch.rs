//! Commands that are sent together, decided one after the other, and answered together.

use crate::command::{Answer, Command, Decided, LedgerError, Outcome, Task};

/// The most commands of one batch.
pub const MAX_BATCH: usize = 8_192;

/// What the refusal of one command means for the others of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMode {
    /// Nothing: each is decided as if it had been sent alone, after those before it.
    Each,
    /// None of them is done, and nothing is stored, not even the refusal. A replayed success counts as success, a
    /// replayed refusal as a refusal.
    Atomic,
}

/// At most [`MAX_BATCH`] commands, in the order in which they are decided. An id that is there twice is a replay the
/// second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    tasks: Vec<Task>,
    mode: BatchMode,
}

/// What is queued as one job, and answered as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    Task(Task),
    Batch(Batch),
}

impl Work {
    /// How many decisions it takes: what it counts against the limits of queues and batches.
    #[must_use]
    pub const fn weight(&self) -> usize {
        match self {
            Self::Task(_) => 1,
            Self::Batch(batch) => batch.tasks.len(),
        }
    }

    /// Each task of it, in order.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        match self {
            Self::Task(task) => std::slice::from_ref(task),
            Self::Batch(batch) => &batch.tasks,
        }
    }
}

impl From<Task> for Work {
    fn from(task: Task) -> Self {
        Self::Task(task)
    }
}

impl From<Batch> for Work {
    fn from(batch: Batch) -> Self {
        Self::Batch(batch)
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batched {
    /// `false` for an atomic batch of which something was refused. A batch of [`BatchMode::Each`] always is.
    pub applied: bool,
    /// One for each command, in their order.
    pub results: Vec<Result<Decided, LedgerError>>,
}

impl Batch {
    /// # Errors
    /// `Invalid` for more than [`MAX_BATCH`] commands.
    pub fn new(commands: Vec<Command>, mode: BatchMode) -> Result<Self, LedgerError> {
        if commands.len() > MAX_BATCH {
            return Err(LedgerError::Invalid {
                field: "operations",
                reason: format!("must be at most {MAX_BATCH}, not {}", commands.len()),
            });
        }
        let tasks = commands.into_iter().map(Task::Run).collect();
        Ok(Self { tasks, mode })
    }

    /// Its commands, as [`Task::Run`].
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// What a refusal means.
    #[must_use]
    pub const fn mode(&self) -> BatchMode {
        self.mode
    }
}

impl Batched {
    /// An atomic batch of `count` commands of which nothing was done, because of what `refused` says of the one at
    /// `culprit`.
    #[must_use]
    pub fn aborted(count: usize, culprit: usize, refused: Result<Decided, LedgerError>) -> Self {
        let mut results = vec![Err(LedgerError::BatchAborted { culprit }); count];
        if let Some(place) = results.get_mut(culprit) {
            *place = refused;
        }
        Self {
            applied: false,
            results,
        }
    }
}

/// The answer to one command of a batch. `None` for what answers no command.
#[must_use]
pub(crate) fn answered(answer: Answer) -> Option<Decided> {
    match answer {
        Answer::Decided { outcome, replayed } => Some(Decided { outcome, replayed }),
        Answer::Opened { .. } | Answer::Tidied { .. } | Answer::Batched(_) => None,
    }
}

impl Decided {
    /// Whether an atomic batch goes on after this.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        match self.outcome {
            Outcome::Posted(_) | Outcome::Amended(_) => true,
            Outcome::Refused(_) => false,
        }
    }
}
