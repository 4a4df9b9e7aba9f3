"""A user's own implementations: each in a process of its own, which runs only while it is its turn.

Their code may change anything a process has: thread counts, the allocator, PyTorch's own functions, threads
that never rest. In the sampler's process that would be in every figure after it, and could not be taken
back. So each file gets a process, a *guest*, with inputs made anew from the same seed. It takes its turn in
the same interleaved rounds as everyone: the sampler hands over, the guest times its block with the same code
and the same clock, and between two turns it is stopped by the system, with all its threads and children.
What it does to itself it alone pays for; a crash, a hang or a leak ends the guest and nobody else.

The price: two processes that run the same code differ by up to 8 %, by how their memory happens to lie, and
a process that was stopped begins cold. Against the second, both sides run up before they are timed
(`sampling.run_up`), and hand over only when their threads rest (`rest`). Against the first, the guest times
the baseline too, beside its own implementation in the same turn, and the speed-up is made of those pairs. A
file that makes its whole process slow would look fast beside what it slowed: where the baseline takes longer
in a guest than in the sampler, by more than two processes ever differ, no claim is made (`core/results`).
"""
