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

complete -c holdup -n "__fish_holdup_needs_command" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_needs_command" -s V -l version -d 'Print version'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "run" -d 'Run CMD and say where its time went'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "attach" -d 'Say the same of what runs already: a stuck process, a service, a container'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "read" -d 'Say the same of artefacts: thread dumps, iostat, strace, kernel and boot logs …'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "show" -d 'Look back: say the same of what was recorded'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "host" -d 'Say how the whole machine does: what is short, who uses it, who waits for it'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "boot" -d 'Say what the machine waited for while it came up'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "diff" -d 'Say what got slower between two runs, recordings or artefacts of one kind, and whether that is more than chance'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "try" -d 'Take a wait away and measure what that brings, before it is paid for'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "record" -d 'Keep looking: a recording of each minute, to look back at with `holdup show`'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "scale" -d 'Say how throughput and latency change as workers are added, and whether they are in each other\'s way'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "scale-work" -d 'Be the leader of workers'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "explain" -d 'Print the page of a rule or cause, or list them all'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "doctor" -d 'Say what can be seen here with these privileges, what cannot, and what to change'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c holdup -n "__fish_holdup_needs_command" -f -a "generate" -d 'Write what is generated from this program\'s own definitions'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l backend -d 'Where the evidence comes from' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Look at /proc now and then: needs no privilege for processes of one\'s own, and tells less'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -s o -l output -d 'Write a recording to FILE too: Parquet, for `holdup show` and any engine that reads that' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand run" -l events -d 'Write the events that enter attribution to FILE too, for `cargo xtask replay` and reports of bugs' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand run" -l jvm-attach -d 'Whether a JVM may be asked for a thread dump' -r -f -a "auto\t'Where nothing else tells'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand run" -l preserve-env -d 'Give CMD of --user all of holdup\'s environment, but for HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l predict -d 'Predict what CMD would take without each cause'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand run" -l redact -d 'Take more out of the recording: all arguments, what is below home directories, the host\'s name'
complete -c holdup -n "__fish_holdup_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s p -l pid -d 'Process, by its id or that of one of its threads; may be given several times, or with commas between them' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l name -d 'Every process of this name, as `ps -eo comm` has it' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l unit -d 'All processes of a systemd unit' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l cgroup -d 'All processes of a cgroup and of those below it, by its path' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s d -l duration -d 'How long to look; else until Ctrl-C' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l backend -d 'Where the evidence comes from' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Look at /proc now and then: needs no privilege for processes of one\'s own, and tells less'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s o -l output -d 'Write a recording to FILE too: Parquet, for `holdup show` and any engine that reads that' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l events -d 'Write the events that enter attribution to FILE too, for `cargo xtask replay` and reports of bugs' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l jvm-attach -d 'Whether a JVM may be asked for a thread dump' -r -f -a "auto\t'Where nothing else tells'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -l redact -d 'Take more out of the recording: all arguments, what is below home directories, the host\'s name'
complete -c holdup -n "__fish_holdup_using_subcommand attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand read" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand read" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand read" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand read" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand read" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand read" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand read" -l collect-script -d 'Print a shell script that collects artefacts on a machine without holdup; `sh SCRIPT > FILE` there, then read FILE'
complete -c holdup -n "__fish_holdup_using_subcommand read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l at -d 'What was at TIME: 13:05, \'2026-11-22 13:05\', or RFC 3339 with its zone; without a date the last time it was that late' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l last -d 'Only the last 10m, 90s, 2h, 1d: of the recording, or before TIME' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l process -d 'Only processes of this name, or with this id' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l cause -d 'Only this cause, such as disk.sync, or all of an area, such as disk' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand show" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand show" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand show" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand show" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand show" -l request -d 'Only the time in which a thread had a request to answer'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l worst -d 'Find the segments that were unlike the others, and say what they waited for'
complete -c holdup -n "__fish_holdup_using_subcommand show" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s d -l duration -d 'How long to look; Ctrl-C ends it earlier' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand host" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand host" -s o -l output -d 'Write a recording to FILE too: Parquet, for `holdup show` and any engine that reads that' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand host" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand host" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand host" -l redact -d 'Take more out of the recording: all arguments, what is below home directories, the host\'s name'
complete -c holdup -n "__fish_holdup_using_subcommand host" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l kernel-log -d 'The kernel\'s log: dmesg, journalctl -k; may be given several times, as the others; - is stdin' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l journal -d 'The service manager\'s log: journalctl -b, in any of its formats' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l critical-chain -d 'What systemd-analyze critical-chain printed; also time, blame, dump, plot' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand boot" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand boot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l before -d 'BEFORE, each file a run' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l after -d 'AFTER, each file a run' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l noise -d 'More runs like BEFORE, to tell how much runs vary' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l per -d 'The unit of work: request, run, second; or how many there were in each run: 500, or 500,400 for BEFORE,AFTER, or message=500,400' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l under -d 'Of profiles and thread dumps: only what was called by a function with this in its name' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand diff" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l without -d 'What to take away: disk.sync, timer.sleep, net.dns, random.device; with --memory also disk and lock.file' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l memory -d 'The directory below which CMD writes: without, that stays in memory' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l runs -d 'How often CMD runs each way' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l timeout -d 'How long a run may take' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l prepare -d 'A shell command before each run, outside the clock: to set things back' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l warmup -d 'A shell command once, before the first run' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l cleanup -d 'A shell command after each run, outside the clock' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l keep -d 'Write the report of every run to DIR too, as JSON, for `holdup diff`' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand try" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand try" -l jvm-attach -d 'Whether a JVM may be asked for a thread dump' -r -f -a "auto\t'Where nothing else tells'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand try" -s y -l yes -d 'Do not ask whether CMD may run that often'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l preserve-env -d 'Give CMD of --user all of holdup\'s environment, but for HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand try" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand record" -l dir -d 'Folder for the recordings; made for its owner alone where it is not there' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l every -d 'Length of a segment' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l keep -d 'How long to keep recordings' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l keep-size -d 'How much room all recordings may take; the oldest go first' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l unit -d 'Only the processes of a systemd unit; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l cgroup -d 'Only the processes of a cgroup and of those below it, by its path' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l on -d 'Keep full detail around moments at which a figure of the machine passes a limit: \'psi.io>20%\'; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l prometheus -d 'Write the last segment\'s figures to FILE too, for node_exporter\'s textfile collector' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand record" -l buffer -d 'Size of the buffer between the kernel and holdup' -r
complete -c holdup -n "__fish_holdup_using_subcommand record" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand record" -l redact -d 'Take more out of the recordings: all arguments, what is below home directories, the host\'s name'
complete -c holdup -n "__fish_holdup_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l workers -d 'Numbers of workers; 1 is always measured, for all is told from there' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l read -d 'Workers read PATH, a file or a device such as /dev/urandom' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l sync -d 'Workers write to a file of their own in DIR and wait until it is safe (fsync)' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l lock -d 'Workers lock PATH (flock), read it, and unlock it' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l dns -d 'Workers ask this name server, an address with or without a port' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l name -d 'What name they ask for' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l size -d 'Bytes of each read or write, with K or M; 4096 if not said, and 64K for --lock' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l control -d 'Compare with readers of this file or device; else of a file of each worker\'s own in memory, and a command with a computation' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l repeats -d 'How often each point is measured' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l operations -d 'Operations of each worker in a measurement; else as many as take a moment' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l timeout -d 'The longest that one operation, or one run of CMD, may take' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l seed -d 'What the order of measuring is drawn with; a report has it' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l user -d 'Run CMD as this user (holdup itself must be root)' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l json -d 'Write the report as JSON to FILE too; - is stdout' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l html -d 'Write the report as a page to look at to FILE too: one file that opens in any browser and fetches nothing' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l format -d 'Format of the report on stdout; `run` prints it on stderr, for stdout is CMD\'s' -r -f -a "terminal\t'For a person'
json\t'For a program: the whole report'
html\t'For a browser: a page to look at'
markdown\t'For an issue tracker or a chat: the verdict'
collapsed\t'For flame graphs: stacks and nanoseconds'
pprof\t'For pprof; binary'
perfetto\t'For Perfetto; binary'
firefox\t'For the Firefox Profiler'
otlp\t'For OpenTelemetry: metrics and profiles as JSON'
prometheus\t'For Prometheus: figures as text'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l export -d 'Write the report to FILE too, in any format but that of the terminal; may be given several times' -r
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l backend -d 'Where the names of what is waited for come from: bpf; proc names nothing and takes the kernel\'s counters alone' -r -f -a "auto\t'The best that works here'
bpf\t'Trace with BPF'
proc\t'Look at /proc now and then: needs no privilege for processes of one\'s own, and tells less'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l getrandom -d 'Workers call getrandom'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l preserve-env -d 'Give CMD of --user all of holdup\'s environment, but for HOME, USER and LOGNAME'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -l no-mask -d 'Show passwords, tokens and keys in arguments, addresses and texts as they are'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s q -l quiet -d 'Print only the verdict\'s first lines'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s v -l verbose -d 'Print all there is: stacks, every wait, sources, what was ruled out'
complete -c holdup -n "__fish_holdup_using_subcommand scale" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand scale-work" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand scale-work" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand explain" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l test-randomness -d 'Only put random bytes from PATH to the block tests of FIPS 140-2; - is stdin' -r -F
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l blocks -d 'How many blocks' -r
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand completions" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "man" -d 'The man pages, into DIR'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "schema" -d 'The JSON Schema of the report, to stdout'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and not __fish_seen_subcommand_from man schema page" -f -a "page" -d 'The page of a report that is given as JSON, to stdout'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from man" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from schema" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from page" -l color -d 'Colour the output' -r -f -a "auto\t'On a terminal that can'
always\t'Even into a file'
never\t'Not at all'"
complete -c holdup -n "__fish_holdup_using_subcommand generate; and __fish_seen_subcommand_from page" -s h -l help -d 'Print help (see more with \'--help\')'
