//! How much of a step's time went into reading and writing blocks, where the plan has it (`track_io_timing`).
//!
//! In: lines below a step: `Buffers: shared hit=12 read=232`, `I/O Timings: shared read=156.5 write=0.2`. Out: a clause, where it is most of the time.
//! Both are of the step with all that is below it, as its own time is.

/// The part of the time from which it is most of it, and the least of it that is told, milliseconds.
const MIN_PART: f64 = 0.5;
const MIN_MS: f64 = 100.0;

/// What a step and those below it read and wrote.
#[derive(Debug, Default, Clone)]
pub(super) struct Io {
    ms: f64,
    read: f64,
    written: f64,
}

/// The sum of all values of a name: `shared read=1.2 write=3, temp read=4`.
fn sum(text: &str, name: &str) -> f64 {
    let values = text.split([' ', ',']).filter_map(|word| word.strip_prefix(name));
    let values = values.filter_map(|value| value.strip_prefix('=')?.parse::<f64>().ok());
    values.filter(|value| (0.0..1e15).contains(value)).sum()
}

impl Io {
    /// Takes a line below the step.
    pub(super) fn take(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("I/O Timings:") {
            self.ms = sum(rest, "read") + sum(rest, "write");
        } else if let Some(rest) = text.strip_prefix("Buffers:") {
            (self.read, self.written) = (sum(rest, "read"), sum(rest, "written"));
        }
    }
}

/// The clause; `total` is the time of all loops, milliseconds.
pub(super) fn told(io: &Io, total: f64) -> Option<String> {
    let share = io.ms / total;
    // Of several processes the times of all are added up.
    let most = io.ms >= MIN_MS && (MIN_PART..=1.02).contains(&share);
    let blocks = match (io.read, io.written) {
        (0.0, 0.0) => "blocks".to_owned(),
        (read, 0.0) => format!("{read:.0} blocks"),
        (read, written) => format!("{:.0} blocks", read + written),
    };
    let does = if io.read == 0.0 && io.written > 0.0 {
        "writing"
    } else {
        "reading"
    };
    most.then(|| {
        format!(
            "; {:.2} s of that ({:.0} %) is {does} {blocks} from storage (I/O)",
            io.ms / 1e3,
            share.min(1.0) * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Io, told};
    use crate::read_text;

    #[test]
    fn a_step_that_reads_most_of_its_time() {
        let text = " Seq Scan on t  (cost=0.00..9.10 rows=10 width=4) (actual time=0.1..4100.2 rows=3 loops=1)\n   Buffers: shared hit=12 read=90210\n   \
            I/O Timings: shared read=3810.5\n Execution Time: 4101.0 ms\n";
        let reading = read_text("e", text.as_bytes());
        let told = reading.texts();
        assert!(
            told[0].contains("3.81 s of that (93 %) is reading 90210 blocks from storage"),
            "{told:?}"
        );
    }

    #[test]
    fn the_words_of_older_servers_and_of_temporary_files() {
        let mut io = Io::default();
        io.take("Buffers: shared hit=3 read=20 written=2, temp read=5 written=5");
        io.take("I/O Timings: read=700.5 write=100.0");
        assert_eq!(
            told(&io, 1_000.0).unwrap(),
            "; 0.80 s of that (80 %) is reading 32 blocks from storage (I/O)"
        );
        io.take("I/O Timings: shared/local read=400.5, temp read=200.0 write=200.0");
        assert!(told(&io, 1_000.0).unwrap().contains("0.80 s"));
    }

    #[test]
    fn a_step_that_computes_and_several_processes() {
        let mut io = Io::default();
        io.take("I/O Timings: read=20.5");
        assert_eq!(told(&io, 30.0), None);
        io.take("I/O Timings: read=900.0");
        assert_eq!(
            (told(&io, 10_000.0), told(&io, 300.0), told(&io, 0.0)),
            (None, None, None)
        );
    }
}
