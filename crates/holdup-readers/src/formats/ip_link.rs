//! `ip -s link` and `ifconfig`: what each interface sent, received, and lost.
//!
//! Where the same interface comes again, the difference of its counters is what it lost between two readings.
//!
//! In: for each interface a heading, and its counters below names or beside them. Out: a statement for each interface that lost more
//! than is ordinary or has no carrier; where none did, one that says so.

use crate::find::find;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use std::collections::HashMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ip-link", Family::Host, recognise).about("ip -s link and ifconfig");

/// The part of packets from which a loss is said to be much: one in a thousand. A choice, not a measurement.
const MIN_LOST_SHARE: f64 = 0.001;

/// Packets that are lost at least: fewer are of the time when a link came up.
const MIN_LOST_PACKETS: u64 = 10;

/// Interfaces that are kept.
const KEPT: usize = 1_000;

/// Bytes of a name that are kept.
const NAME: usize = 60;

/// Counters that are losses, as both programs name them.
const LOSSES: [&str; 12] = [
    "errors",
    "dropped",
    "overrun",
    "overruns",
    "missed",
    "carrier",
    "collsns",
    "collisions",
    "frame",
    "crc",
    "fifo",
    "length",
];

fn recognise(head: &[u8]) -> Sureness {
    let of_ip = find(head, b" mtu ").is_some()
        && (find(head, b"RX: bytes").is_some() || find(head, b"RX:  bytes").is_some());
    let of_ifconfig = find(head, b"RX packets").is_some() && find(head, b"RX errors").is_some();
    let of_old = find(head, b"RX packets:").is_some() && find(head, b"TX packets:").is_some();
    Sureness::certain_if(of_ip || of_ifconfig || of_old)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Received,
    Sent,
}

#[derive(Debug, Default)]
struct Interface {
    name: String,
    no_carrier: bool,
    /// Packets received and sent.
    packets: [u64; 2],
    /// What was lost, under which name.
    lost: Vec<(Way, String, u64, Quote)>,
    quote: Quote,
    /// Whether its counters are those between two readings.
    between: bool,
}

/// The interfaces by name; of those that come again what was counted between the first reading and the last.
fn between(all: Vec<Interface>) -> Vec<Interface> {
    let mut places: HashMap<String, usize, foldhash::fast::FixedState> = HashMap::default();
    let mut firsts: Vec<Interface> = Vec::new();
    let mut lasts: Vec<Option<Interface>> = Vec::new();
    for one in all {
        match places.get(&one.name) {
            Some(place) => {
                if let Some(last) = lasts.get_mut(*place) {
                    *last = Some(one);
                }
            }
            None => {
                places.insert(one.name.clone(), firsts.len());
                firsts.push(one);
                lasts.push(None);
            }
        }
    }
    let pairs = firsts.into_iter().zip(lasts);
    pairs
        .map(|(first, last)| {
            last.map_or_else(Interface::default, |last| last.since(&first))
                .or(first)
        })
        .collect()
}

#[derive(Debug, Default)]
struct Reader {
    done: Vec<Interface>,
    now: Option<Interface>,
    /// Names of the counters that stand in the next line.
    names: Option<(Way, Vec<String>)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(name) = heading(&text) {
            self.close(out);
            self.now = Some(Interface {
                name: name.chars().take(NAME).collect(),
                no_carrier: trimmed.contains("NO-CARRIER"),
                quote: out.here(),
                ..Interface::default()
            });
            return Understood::Evidence;
        }
        let Some(now) = &mut self.now else {
            return Understood::No;
        };
        if let Some((way, names)) = self.names.take() {
            let numbers = trimmed.split_whitespace().map(|word| word.parse().ok());
            if let Some(numbers) = numbers.collect::<Option<Vec<u64>>>() {
                for (name, number) in names.iter().zip(numbers) {
                    now.count(way, name, number, out);
                }
                return Understood::Evidence;
            }
        }
        let Some((way, rest)) = direction(trimmed) else {
            return Understood::Ignorable;
        };
        if rest.bytes().any(|byte| byte.is_ascii_digit()) {
            now.take(way, rest, out);
        } else {
            let rest = rest.trim_start_matches("errors:");
            self.names = Some((way, rest.split_whitespace().map(str::to_owned).collect()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        let done = between(std::mem::take(&mut self.done));
        let Some(first) = done.first() else { return };
        let mut bad = false;
        for interface in &done {
            bad |= interface.tell(out);
        }
        if !bad {
            let packets: u64 = done
                .iter()
                .flat_map(|one| one.packets)
                .fold(0, u64::saturating_add);
            let text = format!(
                "no interface lost {} % of its packets or more ({packets} of {})",
                MIN_LOST_SHARE * 100.0,
                holdup_evidence::units::counted(done.len() as u64, "interface", "interfaces")
            );
            let one = statements::one(StatementKind::WithinNorm, None, first.quote.clone(), text);
            out.statement(one);
        }
    }
}

/// The name of an interface that begins here: `2: eno1: <…> mtu`, `eth0: flags=…`, `eth0      Link encap:…`.
fn heading(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let name = if line.contains(" mtu ") && line.contains('<') {
        let rest = match line.split_once(": ") {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => line,
        };
        rest.split([':', ' ', '@']).next()
    } else {
        line.contains("Link encap:")
            .then(|| line.split_whitespace().next())
            .flatten()
    };
    name.filter(|name| !name.is_empty())
}

fn direction(text: &str) -> Option<(Way, &str)> {
    let way = match text.get(..2)? {
        "RX" => Way::Received,
        "TX" => Way::Sent,
        _ => return None,
    };
    let rest = text.get(2..)?.trim_start_matches(':');
    (rest.len() < text.len() - 2 || rest.starts_with(' ')).then_some((way, rest.trim_start()))
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        self.names = None;
        let Some(now) = self.now.take() else { return };
        match self.done.len() < KEPT {
            true => self.done.push(now),
            false => out.account().left_out += 1,
        }
    }
}

impl Interface {
    /// What was counted since an earlier reading; nothing where a counter has fallen, because it began anew.
    fn since(mut self, first: &Interface) -> Interface {
        let fell = self
            .packets
            .iter()
            .zip(&first.packets)
            .any(|(last, first)| last < first);
        if fell {
            return Interface::default();
        }
        for (last, first) in self.packets.iter_mut().zip(&first.packets) {
            *last -= first;
        }
        for (way, name, lost, _) in &mut self.lost {
            let before = first
                .lost
                .iter()
                .find(|(other, known, ..)| other == way && known == name);
            *lost = lost.saturating_sub(before.map_or(0, |(_, _, lost, _)| *lost));
        }
        self.between = true;
        self
    }

    /// This one, or another where it says nothing.
    fn or(self, other: Interface) -> Interface {
        match self.between {
            true => self,
            false => other,
        }
    }

    fn count(&mut self, way: Way, name: &str, number: u64, out: &Out<'_>) {
        if name == "packets" {
            if let Some(packets) = self.packets.get_mut(way as usize) {
                *packets = number;
            }
        } else if number > 0 && LOSSES.contains(&name) {
            self.lost.push((way, name.to_owned(), number, out.here()));
        }
    }

    /// Names with their numbers behind them: `packets 12  bytes 9 (1.0 MiB)`, `packets:12 errors:0`.
    fn take(&mut self, way: Way, text: &str, out: &Out<'_>) {
        let mut words = text
            .split([' ', ':', '\t'])
            .filter(|word| !word.is_empty())
            .peekable();
        while let Some(name) = words.next() {
            if let Some(number) = words.peek().and_then(|word| word.parse().ok()) {
                words.next();
                self.count(way, name, number, out);
            }
        }
    }

    /// Says what is wrong with it; whether anything is.
    fn tell(&self, out: &mut Out<'_>) -> bool {
        let part = |(way, _, lost, _): &(Way, String, u64, Quote)| {
            let packets = self.packets.get(*way as usize).copied().unwrap_or(0);
            *lost as f64 / packets.saturating_add(*lost).max(1) as f64
        };
        let most = self
            .lost
            .iter()
            .filter(|loss| loss.2 >= MIN_LOST_PACKETS)
            .max_by(|one, other| part(one).total_cmp(&part(other)));
        let Some(most) = most.filter(|most| part(most) >= MIN_LOST_SHARE) else {
            if self.no_carrier {
                let text = format!("{} is up and has no carrier (NO-CARRIER)", self.name);
                out.statement(statements::one(
                    StatementKind::Warned,
                    None,
                    self.quote.clone(),
                    text,
                ));
            }
            return self.no_carrier;
        };
        let (way, name, lost, quote) = most;
        let (verb, packets) = match way {
            Way::Received => ("received", self.packets[0]),
            Way::Sent => ("sent", self.packets[1]),
        };
        let share = part(most);
        let text = format!(
            "{}: {lost} {name} beside {packets} packets {verb}{}, {:.1} % (from {} % on it is much)",
            self.name,
            if self.between { " between two readings" } else { "" },
            share * 100.0,
            MIN_LOST_SHARE * 100.0
        );
        let mut one = statements::one(StatementKind::Failed, None, quote.clone(), text);
        one.share = Some(share);
        out.statement(one);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn of(text: &str) -> Vec<Statement> {
        read_text("i", text.as_bytes()).observed.statements
    }

    #[test]
    fn an_interface_with_errors_is_named_with_their_part() {
        let ip = "2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
            link/ether 3c:ec:ef:11:22:33 brd ff:ff:ff:ff:ff:ff\n    RX: bytes  packets  errors  dropped overrun mcast   \n    \
            918273645  1203344  48211   0       0       1204   \n    TX: bytes  packets  errors  dropped carrier collsns \n    \
            88273645   903344   0       0       0       0       \n";
        let found = of(ip);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, StatementKind::Failed);
        assert_eq!(
            found[0].text,
            "eno1: 48211 errors beside 1203344 packets received, 3.9 % (from 0.1 % on it is much)"
        );
        assert_eq!(of(&ip.replace("48211", "12"))[0].kind, StatementKind::WithinNorm);
        let ifconfig = "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        RX packets 1203344  bytes 918273645 (875.7 MiB)\n        \
            RX errors 48211  dropped 0  overruns 0  frame 48211\n        TX packets 903344  bytes 88273645 (84.1 MiB)\n        \
            TX errors 0  dropped 0 overruns 0  carrier 0  collisions 0\n";
        assert!(
            of(ifconfig)[0].text.starts_with("eth0: 48211 "),
            "{:?}",
            of(ifconfig)
        );
        let old = "eth0      Link encap:Ethernet  HWaddr 3c:ec\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n          \
            RX packets:1000 errors:0 dropped:90 overruns:0 frame:0\n          TX packets:900 errors:0 dropped:0 overruns:0 carrier:0\n";
        assert!(of(old)[0].text.starts_with("eth0: 90 dropped"), "{:?}", of(old));
    }

    #[test]
    fn of_two_readings_the_difference_counts() {
        let reading = |packets: u64, dropped: u64| {
            format!(
                "2: eth0: <UP> mtu 1500 qdisc mq state UP\n    RX:  bytes packets errors dropped  missed   mcast\n    9123110000 {packets} 0 {dropped} 0 1\n"
            )
        };
        let text = reading(8_000_000, 100) + &reading(8_200_000, 50_100);
        assert_eq!(
            of(&text)[0].text,
            "eth0: 50000 dropped beside 200000 packets received between two readings, 20.0 % (from 0.1 % on it is much)"
        );
        // What was lost long ago is over.
        let text = reading(8_000_000, 90_000) + &reading(8_200_000, 90_000);
        assert_eq!(of(&text)[0].kind, StatementKind::WithinNorm);
        // Counters that began anew say nothing of what was between.
        let text = reading(8_000_000, 90_000) + &reading(100, 0);
        assert_eq!(of(&text)[0].kind, StatementKind::Failed);
    }

    #[test]
    fn no_carrier_and_rubbish() {
        let text = "4: eth1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN\n    RX:  bytes packets errors dropped\n    \
            0       0      0       0\n";
        assert_eq!(of(text)[0].text, "eth1 is up and has no carrier (NO-CARRIER)");
        for text in [
            "a: < mtu \nRX: bytes\nRX\n18446744073709551616\n",
            "1: : < mtu \nRX: bytes packets errors\n1 18446744073709551615 18446744073709551615\n",
        ] {
            let _ = of(text);
        }
    }
}
