# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_holdup_global_optspecs
    string join \n color= h/help V/version
end

function __fish_holdup_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_holdup_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_holdup_using_subcommand
    set -l cmd (__fish_holdup_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c holdup -n "__fish_holdup_needs_command" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_needs_command" -s V -l version -d 'Print version'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "run" -d 'Run CMD and report where its time went'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "attach" -d 'Observe running processes: a stuck process, a service, a container'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "read" -d 'Diagnose from artefacts: thread dumps, iostat, strace, kernel and boot logs …'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "show" -d 'Look back: report on recordings'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "top" -d 'Watch live: who waits now, for what, how long already, and behind whom'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "host" -d 'Observe the whole machine: which resource is short, who uses it, who waits for it'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "boot" -d 'Report what the machine waited for while it booted'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "diff" -d 'Compare two runs, recordings or artefacts of one kind: what got slower, and is it more than noise?'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "try" -d 'Remove a wait from CMD and measure the time that it saves'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "record" -d 'Record continuously, one file a minute, to look back with `holdup show`'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "fleet" -d 'Report on many hosts, whose recordings are in object storage'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "scale" -d 'Measure how throughput and latency change as workers are added, and whether the workers contend'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "scale-work" -d 'Lead the workers of a measurement'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "explain" -d 'Print the page of a rule or cause, or list all of them'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "doctor" -d 'Report what holdup can observe here, what it cannot, and what to change'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "report-bug" -d 'Write what a bug report needs to one file; nothing is sent'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "mcp" -d 'Serve agents over the Model Context Protocol on stdin and stdout'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "generate" -d 'Generate files from the definitions of this program'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l fail-on -d 'Exit with 1 if a condition holds, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l baseline -d 'Report with known findings, written by --json, for --fail-on new-finding; may be repeated' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l backend -d 'How to observe threads' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Sample /proc: needs no privileges for your own processes, and reports less'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l budget -d 'CPU time that holdup may use while it observes, as a percentage of one CPU' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -s o -l output -d 'Also write a recording to FILE, in Parquet, for `holdup show` and any Parquet engine' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l events -d 'Also write the events that enter attribution to FILE, for `cargo xtask replay` and bug reports' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l jvm-attach -d 'When to request a thread dump from a JVM' -r -f -a "auto\t'Only if the JVM\'s memory cannot be read'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l preserve-env -d 'With --user, keep the environment of holdup except HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l predict -d 'Predict the elapsed time of CMD without each cause'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l alone -d 'Observe CMD and its children only, not those that block them'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l redact -d 'Also remove all arguments, paths below home directories and the host name from the recording'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l no-logs -d 'Do not read the logs of observed processes'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s p -l pid -d 'Process ID, or the ID of one of its threads: the process and all processes below it; repeat the option or separate IDs with commas' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l name -d 'All processes with this name, as `ps -eo comm` prints it' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l unit -d 'All processes of a systemd unit' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l cgroup -d 'All processes of a cgroup and its descendants, by path' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s d -l duration -d 'How long to observe; default: until Ctrl-C' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l fail-on -d 'Exit with 1 if a condition holds, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l baseline -d 'Report with known findings, written by --json, for --fail-on new-finding; may be repeated' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l backend -d 'How to observe threads' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Sample /proc: needs no privileges for your own processes, and reports less'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l budget -d 'CPU time that holdup may use while it observes, as a percentage of one CPU' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s o -l output -d 'Also write a recording to FILE, in Parquet, for `holdup show` and any Parquet engine' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l events -d 'Also write the events that enter attribution to FILE, for `cargo xtask replay` and bug reports' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l jvm-attach -d 'When to request a thread dump from a JVM' -r -f -a "auto\t'Only if the JVM\'s memory cannot be read'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l only -d 'With --pid, observe that process and what it starts from now on, not the processes that are below it already'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l alone -d 'Observe the selected processes only, not those that block them'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l redact -d 'Also remove all arguments, paths below home directories and the host name from the recording'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l no-logs -d 'Do not read the logs of observed processes'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand read" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand read" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand read" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand read" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand read" -l fail-on -d 'Exit with 1 if a condition holds, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand read" -l baseline -d 'Report with known findings, written by --json, for --fail-on new-finding; may be repeated' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand read" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand read" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand read" -l collect-script -d 'Print a shell script that collects artefacts on a machine without holdup: run `sh SCRIPT > FILE` there, then read FILE'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l at -d 'Report on TIME: 13:05, \'2026-11-22 13:05\', or RFC 3339 with a time zone; without a date, the latest such time' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l last -d 'Only the last part of the recording, or the part before TIME: 10m, 90s, 2h or 1d' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l process -d 'Only processes with this name or ID' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l cause -d 'Only this cause, such as disk.sync, or this group of causes, such as disk' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l fail-on -d 'Exit with 1 if a condition holds, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l baseline -d 'Report with known findings, written by --json, for --fail-on new-finding; may be repeated' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand show" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand show" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand show" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand show" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand show" -l request -d 'Only the time in which a thread served a request'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l worst -d 'Find the segments that differ most from the others, and report what they waited for'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand top" -s p -l pid -d 'Only these processes and their descendants; may be repeated. A thread ID stands for its process' -r
complete -c holdup -n "__fish_holdup_using_subcommand top" -l unit -d 'Only the processes of a systemd unit; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand top" -l dir -d 'Show the recordings in DIR, made by `holdup record`, instead of this machine now; Left and Right go from one to the next' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand top" -l backend -d 'How to observe threads; auto samples /proc, which costs least' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Sample /proc: needs no privileges for your own processes, and reports less'"
complete -c holdup -n "__fish_holdup_using_subcommand top" -l budget -d 'CPU time that holdup may use while it observes, as a percentage of one CPU' -r
complete -c holdup -n "__fish_holdup_using_subcommand top" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand top" -l no-color -d 'No colours, as with --color never'
complete -c holdup -n "__fish_holdup_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s d -l duration -d 'How long to observe; Ctrl-C ends it earlier' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -l fail-on -d 'Exit with 1 if a condition holds, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -l baseline -d 'Report with known findings, written by --json, for --fail-on new-finding; may be repeated' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l budget -d 'CPU time that holdup may use while it observes, as a percentage of one CPU' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand host" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -s o -l output -d 'Also write a recording to FILE, in Parquet, for `holdup show` and any Parquet engine' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand host" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand host" -l redact -d 'Also remove all arguments, paths below home directories and the host name from the recording'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l kernel-log -d 'Kernel log, from dmesg or journalctl -k; - is stdin; may be repeated, as the other options' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l journal -d 'Journal, from journalctl -b, in any of its output formats' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l critical-chain -d 'Output of systemd-analyze critical-chain, time, blame, dump or plot' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l before -d 'Runs of BEFORE, one file each' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l after -d 'Runs of AFTER, one file each' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l noise -d 'More runs like BEFORE, to measure how much runs vary' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l per -d 'Unit of work: request, run or second. Or the number of units in each run: 500, 500,400 for BEFORE,AFTER, or message=500,400' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l under -d 'In profiles and thread dumps, compare only stacks below a function with this text in its name' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l fail-on -d 'Exit with 1 if AFTER is slower than BEFORE, and with 3 if that cannot be determined' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l without -d 'Wait to remove: disk.sync, timer.sleep, net.dns, random.device; with --memory also disk and lock.file' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l memory -d 'Directory that CMD writes to; in runs without the wait, these writes stay in memory' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l runs -d 'Number of runs with the wait, and of runs without it' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l timeout -d 'Time limit for each run' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l prepare -d 'Shell command to run before each run, to restore the initial state; not measured' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l warmup -d 'Shell command to run once, before the first run' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l cleanup -d 'Shell command to run after each run; not measured' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l keep -d 'Also write the report of each run to DIR as JSON, for `holdup diff`' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l jvm-attach -d 'When to request a thread dump from a JVM' -r -f -a "auto\t'Only if the JVM\'s memory cannot be read'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -s y -l yes -d 'Do not ask for confirmation before CMD runs'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l preserve-env -d 'With --user, keep the environment of holdup except HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand record" -l dir -d 'Directory for the recordings; if missing, it is created, readable by its owner only' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l to -d 'Also upload the recordings to object storage: s3://BUCKET/PREFIX or file:///DIRECTORY' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l every -d 'Length of a segment' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l keep -d 'How long to keep recordings' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l keep-size -d 'Total size limit of all recordings; the oldest are removed first' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l unit -d 'Only the processes of a systemd unit; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l cgroup -d 'Only the processes of a cgroup and its descendants, by path' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l on -d 'Record full detail while a metric of the machine exceeds a limit, as in \'psi.io>20%\'; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l prometheus -d 'Also write the metrics of the last segment to FILE, for the textfile collector of node_exporter' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l budget -d 'CPU time that holdup may use while it observes, as a percentage of one CPU' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand record" -l redact -d 'Also remove all arguments, paths below home directories and the host name from the recordings'
complete -c holdup -n "__fish_holdup_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand fleet" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l workers -d 'Numbers of workers; 1 is always measured, as the baseline' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l read -d 'Workers read PATH, a file or a device such as /dev/urandom' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l sync -d 'Each worker writes to its own file in DIR and calls fsync' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l lock -d 'Workers lock PATH (flock), read it, and unlock it' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l dns -d 'Workers query this name server, an address with or without a port' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l name -d 'Name that the workers query' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l size -d 'Bytes per read or write, with K or M; default: 4096, and 64K for --lock' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l control -d 'File or device that the control reads; default: a file in memory for each worker, and for CMD a computation' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l repeats -d 'Number of measurements at each point' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l operations -d 'Operations of each worker in a measurement; default: chosen so that a measurement is short' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l timeout -d 'Time limit for one operation or one run of CMD' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l seed -d 'Seed for the random order of measurements; the report contains it' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l json -d 'Also write the report as JSON to FILE; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l html -d 'Also write the report as one HTML page to FILE; the page loads nothing from the network' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l format -d 'Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: an HTML page'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: metrics as text'
github\t'For GitHub workflows: annotations'
junit\t'For build servers: test results as JUnit XML'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l export -d 'Also write the report to FILE, in any format but terminal; may be repeated' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l backend -d 'How to observe waits: bpf names the resources; proc uses only the kernel\'s counters and names none' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Sample /proc: needs no privileges for your own processes, and reports less'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l getrandom -d 'Workers call getrandom'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l preserve-env -d 'With --user, keep the environment of holdup except HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l no-mask -d 'Do not mask passwords, tokens and keys in arguments, addresses and texts'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s q -l quiet -d 'Print only the first lines of the verdict'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s v -l verbose -d 'Print everything: stacks, every wait, sources, and what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand scale-work" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand scale-work" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand explain" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand explain" -s v -l verbose -d 'Also print the examples'
complete -c holdup -n "__fish_holdup_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l test-randomness -d 'Only run the block tests of FIPS 140-2 on random bytes from PATH; - is stdin' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l blocks -d 'Number of blocks' -r
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand report-bug" -l report -d 'Also include this report: a file that --json or --html wrote' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand report-bug" -s o -l output -d 'Where to write; an existing file is not replaced' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand report-bug" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand report-bug" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand mcp" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand mcp" -l allow-try -d 'Let the tool observe also run commands, unchanged or without a wait, as `run` and `try` do'
complete -c holdup -n "__fish_holdup_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand completions" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "man" -d 'Write the man pages to DIR'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "schema" -d 'Print the JSON Schema of the report'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "page" -d 'Print the HTML page of a JSON report'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from man" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from schema" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from page" -l color -d 'Colour the output' -r -f -a "auto\t'If the output is a terminal with colours'
always\t'Always, even into a file'
never\t'Never'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from page" -s h -l help -d 'Print help (see more with \'--help\')'
