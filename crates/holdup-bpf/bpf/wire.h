/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records from the programs to user space: the one definition of both sides. The build turns it into Rust
 * types (by way of the object's type information); src/decode.rs makes evidence of them. Times are
 * CLOCK_MONOTONIC in nanoseconds. Threads and objects are numbered by the programs; no number is used again.
 */
#ifndef HOLDUP_WIRE_H
#define HOLDUP_WIRE_H

#define HOLDUP_COMM 16            /* the kernel's TASK_COMM_LEN */
#define HOLDUP_KERNEL_FRAMES 48   /* deepest kernel stack kept, frames */
#define HOLDUP_STACK_BYTES 16384  /* user stack copied, bytes */
#define HOLDUP_NAMES 2048         /* path components of an object, bytes */
#define HOLDUP_NAME_MAX 256       /* longest component, bytes */
#define HOLDUP_POLLED 16          /* descriptors of a poll kept */
#define HOLDUP_QUESTIONS 4        /* sockets kept on which a thread with a request has asked others */
#define HOLDUP_EDGES (1u << 31)   /* EPOLLET */
#define HOLDUP_ASKED 4            /* descriptors of a poll kept as it begins */
#define HOLDUP_ASKED_SENT 7       /* descriptors in a record of what was asked for */
#define HOLDUP_PATH_ARG 256       /* path argument of a call, bytes */
#define HOLDUP_PROGRAM 256        /* path of an exec'd program, bytes */
#define HOLDUP_UNIX_PATH 108      /* sun_path */
#define HOLDUP_HOLDER_WORDS 10    /* what a wait's record says of who is in the way */
#define HOLDUP_FUTEX_AT 3         /* words before a futex that are kept: a glibc rwlock has its state there */
#define HOLDUP_REQUEST_LINE 64    /* of what a request begins with, bytes: a method and most of a path */
#define HOLDUP_HELLO_BYTES 2048   /* of the first TLS record of each direction: keys of newer kinds take 1,200 of them */
#define HOLDUP_HELLO_MOST 2047    /* copied of it; all bits are set, so that it masks a length */
#define HOLDUP_QUESTION 160       /* of a question to a name server, bytes: most names are shorter */
#define HOLDUP_DEVICE_NAME 16     /* the kernel's IFNAMSIZ */
#define HOLDUP_LANES 512          /* numbers handed out at once: more than CPUs times contexts that nest on one */

enum holdup_record {
	HOLDUP_START = 1,
	HOLDUP_EXEC,
	HOLDUP_RENAMED,
	HOLDUP_OBJECT,
	HOLDUP_KERNEL_STACK,   /* belongs to the wait record that follows for the same thread */
	HOLDUP_WAIT,
	HOLDUP_ASKED_FOR,      /* belongs to the wait record that follows for the same thread */
	HOLDUP_MEMORY,
	HOLDUP_CPU,
	HOLDUP_RAN_INSTEAD,
	HOLDUP_SIGNAL,
	HOLDUP_END,
	HOLDUP_TCP,            /* belongs to the wait record that follows for the same thread */
	HOLDUP_CONNECTION,
	HOLDUP_NAME_ASKED,
	HOLDUP_REQUEST,
	HOLDUP_EARLIER,
	HOLDUP_PEEK,           /* a wait that goes on: told to look who is in the way, and reported again when it is over */
	HOLDUP_MADE_BY,        /* a holdup_memory: of who makes a thread, process or connection; seq is enum holdup_made, weight names the connection */
	HOLDUP_HELLO,
	HOLDUP_CONVERSATION,
};

enum holdup_loss {
	HOLDUP_LOST_WAITS,
	HOLDUP_LOST_THREAD_RECORDS,
	HOLDUP_LOST_OBJECTS,
	HOLDUP_LOST_STACKS,
	HOLDUP_LOST_CPU_SAMPLES,
	HOLDUP_LOST_THREADS,
	HOLDUP_LOST_WAKINGS,   /* the wait is known, its waker is not */
	HOLDUP_LOST_REQUESTS,
	HOLDUP_LOST_CONNECTIONS,
	HOLDUP_LOST_SWITCHES,  /* when a thread got its CPU is not known, so neither is the wait before */
	HOLDUP_LOSS_CLASSES,
};

enum holdup_waker {
	HOLDUP_WAKER_UNKNOWN,
	HOLDUP_WAKER_THREAD,     /* of the run, in task context */
	HOLDUP_WAKER_OUTSIDE,    /* any other task, in task context */
	HOLDUP_WAKER_SOFTIRQ,
	HOLDUP_WAKER_HARDIRQ,
	HOLDUP_WAKER_NOT_YET,    /* still blocked when observation ended */
};

/* What a wait's `holder` words are. */
enum holdup_holder {
	HOLDUP_HOLDER_NONE,
	HOLDUP_HOLDER_FUTEX,       /* memory around the futex; the word at its address is number HOLDUP_FUTEX_AT */
	HOLDUP_HOLDER_FILE_LOCK,   /* process id, 0 if the kernel keeps none */
	HOLDUP_HOLDER_PI,          /* as enum holdup_owner has them, of a priority-inheritance futex */
	HOLDUP_HOLDER_KERNEL_LOCK, /* the same, of a lock in the kernel */
	HOLDUP_HOLDER_TRACER,      /* the same, of the tracer */
	HOLDUP_HOLDER_NOBODY_ASKED, /* io_uring: every request that was made had completed */
};

/* Places of an owner that the kernel names: ids in the initial namespace, 0 where none can be known. */
enum holdup_owner {
	HOLDUP_OWNER_TID,
	HOLDUP_OWNER_PID,
	HOLDUP_LOCK_FLAGS,         /* of a kernel lock: the tracepoint's */
	HOLDUP_LOCK_SPACE,         /* process whose address space the lock guards */
	HOLDUP_LOCK_OBJECT,        /* object that the lock belongs to */
};

/* What interrupted a running thread. */
enum holdup_interrupt {
	HOLDUP_BY_DEVICE,
	HOLDUP_BY_TIMER,
	HOLDUP_BY_NETWORK,
	HOLDUP_BY_DISK,
	HOLDUP_BY_CPU,           /* a call from another CPU */
	HOLDUP_BY_KERNEL,        /* the kernel's other soft interrupts: scheduler, RCU, tasklets */
	HOLDUP_INTERRUPTS,
};

/* Why a thread is watched. */
enum holdup_role {
	HOLDUP_ROLE_SUBJECT,     /* it is what was asked about */
	HOLDUP_ROLE_NEIGHBOUR,   /* the subject waits for it */
};

/* What somebody makes. */
enum holdup_made { HOLDUP_MADE_THREAD, HOLDUP_MADE_PROCESS, HOLDUP_MADE_CONNECTION, HOLDUP_MADE_KINDS };

/* Who closed a connection first. */
enum holdup_closer { HOLDUP_NOT_CLOSED, HOLDUP_CLOSED_HERE, HOLDUP_CLOSED_BY_PEER };

/* What a record of a conversation tells. */
enum holdup_conversation_step {
	HOLDUP_CONVERSATION_MADE,
	HOLDUP_CONVERSATION_CLOSED,
	HOLDUP_CONVERSATION_TURNED,   /* of one that began as TLS does, asked for here: its client has said more */
};

enum holdup_phase { HOLDUP_NEW, HOLDUP_RUNNING, HOLDUP_QUEUED, HOLDUP_BLOCKED };

struct holdup_head { u32 type; u32 thread; };
/* The first three tile the thread's life; `interrupt` is part of `cpu`, `throttled` of `queued`; the last two are parts of
 * `cpu` and `queued` with a request to answer. */
/* Of `blocked`: `repeated` ns in `repeats` waits that were like the one reported before them and got no record of their own (repeats.h). */
struct holdup_clock {
	u64 cpu; u64 queued; u64 blocked; u64 interrupt; u64 throttled; u64 served_cpu; u64 served_queued; u64 repeats; u64 repeated;
};
struct holdup_task { u32 pid; u32 tid; u32 kernel; u32 zero; char comm[HOLDUP_COMM]; };
struct holdup_call { u64 args[4]; s32 number; u32 zero; };
struct holdup_regs { u64 ip, sp, saved[HOLDUP_SAVED]; };

struct holdup_start {
	struct holdup_head head;
	u64 at;
	struct holdup_task task;
	struct holdup_clock parent_clock;
	u32 parent;
	u32 has_parent;
	u32 namespace;                /* inode of its pid namespace and its thread id in there; 0 in the initial one */
	u32 tid_inside;
	u32 role;                     /* enum holdup_role */
	u32 creator;                  /* process that made its process, as the kernel has it; 0: not reported */
	u32 adopted;                  /* it lived before it was watched */
	u32 zero;
	char process[HOLDUP_COMM];    /* name of its process's first thread; empty: not reported */
};

/* What an adopted thread's memory said of the call that it is in, read by user space: the programs can only read the
 * memory of the task that runs. */
struct holdup_looked {
	s32 number;                   /* of the call it was in then, */
	u32 zero;
	u64 address;                  /* and that call's first argument */
	u32 words[HOLDUP_HOLDER_WORDS]; /* around the futex, as in holdup_wait */
	struct { s32 fd; s16 events; s16 revents; } fds[HOLDUP_ASKED]; /* places that are not used: fd below 0 */
	u64 select_reads, select_writes;
};

struct holdup_exec {
	struct holdup_head head;
	u64 at;
	struct holdup_task task;
	char program[HOLDUP_PROGRAM];
};

struct holdup_renamed { struct holdup_head head; char comm[HOLDUP_COMM]; };

struct holdup_object {
	struct holdup_head head;      /* thread: unused */
	u64 inode;
	u64 magic;                    /* file system magic number */
	u32 id;
	u32 mode;
	u32 device;                   /* the kernel's dev_t of the file system */
	u32 rdev;                     /* the kernel's dev_t of a device node */
	char file_system[16];
	u16 family, kind, protocol, local_port, peer_port, state;
	u32 peer_pid;
	u64 peer_inode;               /* of the other end of a Unix socket; 0: not known */
	u8 local[16], peer[16];       /* IPv4 in the first four bytes, network order */
	u32 local_unix_len, peer_unix_len;
	char local_unix[HOLDUP_UNIX_PATH], peer_unix[HOLDUP_UNIX_PATH];
	u32 names_len;                /* bytes used: components from the leaf up, each ended by NUL */
	u32 names_truncated;          /* the path does not begin at the root of the mount namespace */
	u32 names_in_file_system;     /* it begins at the root of its file system, wherever that is mounted */
	u32 zero;
	char names[HOLDUP_NAMES + HOLDUP_NAME_MAX];
};

struct holdup_kernel_stack {
	struct holdup_head head;
	u32 seq;
	u32 frames;
	u64 ips[HOLDUP_KERNEL_FRAMES];
};

struct holdup_wait {
	struct holdup_head head;
	u32 seq;
	u32 state;                    /* the kernel's task state bits */
	u64 start;
	u64 end;
	struct holdup_clock clock;
	struct holdup_call call;
	u32 object;                   /* 0: none */
	u32 ready;                    /* 0: none */
	u32 socket;                   /* 0: none */
	u8 iowait;
	u8 memory_follows;
	u8 waker_kind;
	u8 holder_kind;
	u32 serves;                   /* it had a request to answer */
	u32 unanswered;               /* then: a socket on which it has asked, and got no answer; 0: none */
	u32 holder[HOLDUP_HOLDER_WORDS];
	u32 waker_thread;
	s32 waker_call;
	struct holdup_clock waker_clock;
	u64 waker_arg;                /* first argument of the waker's call */
	struct holdup_task waker;     /* of outsiders */
};

struct holdup_polled { s32 fd; u16 events; u16 revents; u32 object; };

/* What a poll waited for, as it began; of an epoll, the top of its tree. */
struct holdup_asked {
	struct holdup_head head;
	u32 seq;
	u32 polled;                   /* places used; a descriptor below 0 is none */
	u32 truncated;
	u32 zero;
	struct holdup_polled polled_fds[HOLDUP_ASKED_SENT];
};

/* What a thread's memory held: after a wait, or when it was sampled on a CPU. */
struct holdup_memory {
	struct holdup_head head;
	u64 at;
	u64 weight;                   /* ns this stack stands for */
	u32 seq;
	u32 first;                    /* the same memory was there in all waits from this to seq */
	u32 on_cpu;
	u32 pid;
	u32 tid;
	u32 completed;                /* io_uring: what the first request was about that completed; 0: not known */
	s64 returned;
	u32 has_returned;
	u32 polled;
	u32 polled_truncated;
	u32 path_len;                 /* with the NUL; 0: none */
	struct holdup_polled polled_fds[HOLDUP_POLLED];
	char path[HOLDUP_PATH_ARG];
	struct holdup_regs regs;
	u32 stack_len;
	u32 left_out;                 /* bytes of an array on the stack that are left out, ... */
	u32 left_out_at;              /* ... from this byte of the stack on */
	u32 zero;
	u8 stack[HOLDUP_STACK_BYTES];
};

struct holdup_cpu {
	struct holdup_head head;
	u64 at;
	u32 seq;
	u32 object;
	struct holdup_call call;
	u32 user;
	u32 frames;
	u64 ips[HOLDUP_KERNEL_FRAMES];
};

struct holdup_ran_instead {
	struct holdup_head head;
	u64 at;
	u64 ns;
	u32 cpu;
	u32 idle;
	s32 by_priority;              /* the kernel's: below 100 real time, 120 + nice else, more for idle */
	s32 priority;                 /* of the one that queued */
	u32 by_idle_class;            /* SCHED_IDLE */
	u32 idle_class;
	u64 allowed;                  /* CPUs below 64 that it may run on, a bit each */
	u32 allowed_count;
	u32 same_group;               /* both share one queue: their nice values count against each other */
	struct holdup_task by;
};

struct holdup_signal { struct holdup_head head; u64 at; s32 signal; u32 zero; struct holdup_task by; };

struct holdup_end {
	struct holdup_head head;
	u64 at;
	u64 born;
	struct holdup_task task;
	struct holdup_clock clock;
	u64 blockings;
	u64 lost_ns;
	u64 lost_count;
	u64 runtime;                  /* the kernel's own figures */
	u64 run_delay;
	u64 voluntary;
	u64 involuntary;
	u64 interrupts[HOLDUP_INTERRUPTS]; /* ns of the clock's `interrupt`, by kind */
	s32 exit_code;
	u32 open;                     /* 0 ended, else 1 + enum holdup_phase */
	struct holdup_regs regs;      /* of a blocked thread that lives on */
};

/* The state of the TCP connection that a thread waited on. Counts are of bytes but where they say otherwise. */
struct holdup_tcp {
	struct holdup_head head;
	u32 seq;
	u32 began_unsent;             /* as the wait began: written and not sent, */
	u32 began_unacked;            /* sent and not acknowledged, */
	u32 began_window;             /* what the peer had room for */
	u32 segment;                  /* largest segment */
	u32 unacked;                  /* as it ended */
	u32 window;
	u32 retransmitted;            /* segments sent again while it lasted */
	u32 acked;                    /* acknowledged while it lasted */
	u32 round_trip;               /* µs, smoothed */
	u32 lasted;                   /* the wait, in the kernel's ticks */
	u32 limited;                  /* of these: the receiver's window was all that kept it from sending */
	u8 unanswered;                /* repetitions on end without an answer, as it ended */
	u8 probes;                    /* questions on end whether there is room again */
	u8 state;
	u8 no_delay;                  /* TCP_NODELAY, as it began */
	u8 throttled;                 /* the device's queue was full of it, as it began */
	u8 zero[3];
	char device[HOLDUP_DEVICE_NAME]; /* empty: no route is cached */
};

/* What became of a request for a connection. */
struct holdup_connection {
	struct holdup_head head;      /* who asked */
	u64 began;
	u64 at;
	u16 family, port, made, error; /* error: errno of the failure; 0 where the program gave up by itself */
	u8 peer[16];
};

/* A question to a name server. */
struct holdup_question {
	struct holdup_head head;      /* thread: unused */
	u64 at;
	u64 inode;                    /* the socket's */
	u16 family, port;
	u32 len;
	u8 server[16];
	u8 message[HOLDUP_QUESTION];
};

enum holdup_request_step {
	HOLDUP_REQUEST_READ,
	HOLDUP_REQUEST_READ_ON, /* more of the same, or another before an answer, after its reader has waited */
	HOLDUP_REQUEST_ANSWERED,
	HOLDUP_REQUEST_DROPPED, /* its connection was closed, and nothing had been answered */
	HOLDUP_REQUESTS_LEFT,   /* who read them waits for new connections: if they are answered, it is by another */
};

/* What became of a request on an accepted connection. */
struct holdup_request {
	struct holdup_head head;      /* who did it */
	u64 at;
	u64 connection;               /* names the connection, for as long as the request is open; 0: all of the thread's */
	struct holdup_clock clock;    /* of the thread, at `at` */
	u32 step;                     /* enum holdup_request_step */
	u32 weight;                   /* how many it stands for: at high rates only some are reported */
	char begins[HOLDUP_REQUEST_LINE]; /* what was read, its beginning; zeros where it is not known */
	u32 port;                     /* as it is read: that is listened on; 0: none, as of Unix sockets */
	u32 zero;
};
/* A connection on which the last word was the client's, or ours to somebody else, before anybody looked. */
struct holdup_earlier {
	struct holdup_head head;      /* thread: unused */
	u64 at;
	u64 connection;
	u64 inode;                    /* the socket's */
	u32 pid;
	u32 accepted;                 /* it was read from; else it was written to */
	u32 first;                    /* nothing had ever gone the other way */
	u32 ago;                      /* how long before `at` that was, in the kernel's ticks */
	u32 gap;                      /* how long after the last word of the other, in ticks */
	u32 received, sent;           /* segments with data, over the life of the connection */
	u32 zero;
};

/* A piece of the first TLS record that a connection carried in one direction. */
struct holdup_hello {
	struct holdup_head head;      /* who sent or received it */
	u64 connection;               /* names the connection, for as long as it is open */
	u64 at;
	u32 answer;                   /* the server's */
	u32 offset;                   /* bytes of the record before this piece */
	u32 len;
	u32 object;                   /* its socket, as waits on it name it; 0: not known */
	u8 bytes[HOLDUP_HELLO_BYTES];
};

/* A connection was made, or closed, or its handshake went on. */
struct holdup_conversation {
	struct holdup_head head;      /* who asked for it; of an accepted one, who used it first */
	u64 connection;
	u64 began;                    /* when it was asked for */
	u64 made;
	u64 at;                       /* now */
	u64 second_began;             /* when the second turn began; 0: there was none */
	u64 second_answered;          /* when the last of its answer passed; 0: there was none */
	u64 third_began;              /* when the third turn began; 0: there was none */
	u32 turns;                    /* how often a question followed an answer, the first question included */
	u32 second;                   /* bytes of the second turn's questions */
	u16 family, port, accepted, step; /* step: enum holdup_conversation_step */
	u32 closer;                   /* enum holdup_closer */
	u32 zero;
	u8 end[16];                   /* whom it was made to; of an accepted one, its own end. IPv4 in the first four bytes */
};
enum holdup_numbers { HOLDUP_NUMBER_LANES = HOLDUP_LANES };

/* Never read: makes the build's type information contain every record. */
union holdup_wire {
	enum holdup_numbers numbers;
	enum holdup_record record; enum holdup_waker waker; enum holdup_holder holder; enum holdup_owner owner;
	enum holdup_phase phase; enum holdup_role role; struct holdup_looked looked; enum holdup_request_step step;
	enum holdup_interrupt interrupt;
	struct holdup_start start; struct holdup_exec exec; struct holdup_renamed renamed; struct holdup_object object;
	struct holdup_kernel_stack kernel_stack; struct holdup_wait wait; struct holdup_asked asked; struct holdup_memory memory;
	struct holdup_cpu cpu; struct holdup_ran_instead ran_instead; struct holdup_signal signal; struct holdup_end end;
	enum holdup_made made; enum holdup_closer closer; enum holdup_conversation_step conversation_step; struct holdup_hello hello; struct holdup_conversation conversation;
	struct holdup_tcp tcp; struct holdup_connection connection; struct holdup_question question; struct holdup_request request;
	struct holdup_earlier earlier;
};

#endif
