"""Many tasks on many workers: any `concurrent.futures.Executor` carries them out, and nothing here schedules.

A task is a pure function of files, settings and data, and answers in plain values as JSON has them; answers are sums
that merge in any order. So a figure does not depend on how many workers there were, on which of them failed, or on what
a journal already had.

    sums       sums of floats that are the same in any order
    parcel     files that travel once to a worker that cannot read them
    machine    what makes the numbers of two workers comparable; one measurement at a time on each
    tasks      tasks, and what a worker does with one
    kept       what a worker makes once, compiled networks for instance
    journal    finished tasks in a file, for a run that goes on later
    engine     from tasks to answers, over workers that come and go
    workers    processes of this machine, or a Dask cluster
"""
