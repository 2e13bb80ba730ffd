/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which file a thread is about to wait for where its call names none: the page cache says so, just before. */
#ifndef HOLDUP_PAGES_H
#define HOLDUP_PAGES_H

#include "objects.h"

/* A page that was not in memory: whoever adds it to the page cache is about to wait for it. */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_page_added, void *page)
{
	struct thread *t = thread_of(current_task());
	if (t)
		t->reading = inode_of_page(page);
	return 0;
}

/* A page that is on its way to the disk, and that this thread is about to wait for. */
SEC("tp_btf/folio_wait_writeback")
int BPF_PROG(on_page_written, struct folio *folio, struct address_space *mapping)
{
	struct thread *t = thread_of(current_task());
	if (t && mapping)
		t->reading = (u64)BPF_CORE_READ(mapping, host);
	return 0;
}

#endif
