"""A user's own implementations: each in a process of its own, which runs only while it is its turn.

Their code may change anything a process has: thread counts, the allocator, PyTorch's own functions, threads
that never rest. In the sampler's process that would be in every figure after it, and could not be taken
back. So each file gets a process, a *guest*, with inputs made anew from the same seed. It takes its turn in
the same interleaved rounds as everyone: the sampler hands over, the guest times its block with the same code
and the same clock, and between two turns it is stopped by the system, with all its threads and children.
What it does to itself it alone pays for; a crash, a hang or a leak ends the guest and nobody else.

The price: another process is another draw of the memory's layout, which the baseline's twin in the sampler
cannot show. So where a plan holds own implementations the baseline is run a third time, in a guest without
any user's code, and that is what their noise floor is made of.
"""
