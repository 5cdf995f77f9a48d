---------------------------- MODULE Replication ----------------------------
(***************************************************************************)
(* One replicated journal of one shard (CLUSTER.md, sections 2 and 3).      *)
(*                                                                          *)
(* A leader for each epoch, named by a compare-and-swap store; followers    *)
(* copy the leader's entries at the same positions and ack what they have   *)
(* fsynced; an entry is durable when every replica that MAY be in the       *)
(* in-sync set has acked it. Elections may happen at any time, so a deposed *)
(* leader may go on for as long as it likes.                                *)
(*                                                                          *)
(* What is left out: several journals (they are independent), the network   *)
(* as messages (an ack, once given, may be used by the leader of its epoch  *)
(* at any later time, even after the follower was cut or has crashed: that  *)
(* is the worst a delayed message can do), leases (they matter for reads of *)
(* the end, P8, not for what is durable).                                   *)
(*                                                                          *)
(* Each rule of the design is a constant; with all of them on, nothing that *)
(* is durable may be lost or changed. Switching one off must be caught.     *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Replicas, First,       \* the replicas, and who leads epoch 1
    MaxEpoch, MaxLen,      \* bounds: elections, entries in a journal,
    MaxCrash, MaxLoss,     \* crashes that keep what was fsynced, and that don't,
    MaxWrites,             \* changes of the in-sync set that leaders ask for
    MinInSync,             \* min.insync.replicas
    \* --- the rules ---------------------------------------------------------
    CountBeforeWrite,      \* who is about to be added counts from before the write is sent
    CountUntilKnown,       \* who is being removed counts until the write is known to have succeeded
    UnchangedProvesNothing,\* reading back an unchanged record does not mean that the write failed: it may come late
    CompareIncarnation,    \* adding a replica compares its incarnation: it has not been restarted since (KIP-903)
    OneAtATime,            \* a change is asked for only from a set that is known to be in force; the same one may be sent
                           \* again, and a write of the known set supersedes one whose outcome stays unknown
    RemoveUnclean,         \* who may have lost what it acked is taken out of in_sync when it registers (KIP-966)
    KeepMin,               \* in_sync is never shrunk below MinInSync, but by RemoveUnclean
    ElectInSyncOnly,
    NewEpochEachLife,      \* a restarted leader does not go on in its old epoch
    JoinAtEpochStart,      \* who is added holds the leader's whole tail at takeover, not only what is known as durable
    AwaitAll,              \* durable is what ALL of the widest set have (off: any MinInSync of them)
    RefuseOldEpoch,        \* I8: a follower obeys only the newest epoch that it knows
    CutRule                \* "exact": where the histories part; "tail": at the leader's end; "none";
                           \* "known": at what the follower knows to be durable (Kafka before KIP-101)

VARIABLES
    log, synced,     \* a replica's journal, and how much of it is fsynced
    known,           \* up to here the replica knows the journal to be durable: folded, copied, shown
    inc,             \* its incarnation: lives of the process
    newest, aligned, \* the newest epoch that it knows; whether it was cut for this epoch, and may be fed and acks
    lead,            \* the epoch that it believes to lead, or 0
    view, sets,      \* of a leader: version and in_sync of the store's record as last read; sets of which one is in force
    start,           \* of a leader: its tail when it took over
    acks,            \* acks[e][r]: what r acked to the leader of epoch e, and in which incarnation
    store,           \* the record of the shard: version, epoch, leader, in_sync
    writes,          \* compare-and-swaps that are under way to the store
    durable,         \* ghost: all that was ever durable
    forked,          \* ghost: two different entries were durable at one position
    used             \* ghost: crashes, losses, writes so far

vars == <<log, synced, known, inc, newest, aligned, lead, view, sets, start, acks, store, writes, durable, forked, used>>

Min(a, b) == IF a < b THEN a ELSE b
Least(S) == CHOOSE x \in S : \A y \in S : x <= y
Greatest(S) == CHOOSE x \in S : \A y \in S : x >= y
Prefix(s, n) == SubSeq(s, 1, n)
IsPrefix(s, t) == Len(s) <= Len(t) /\ Prefix(t, Len(s)) = s
Epochs == 1..MaxEpoch
NoAck == [pos |-> 0, inc |-> 0]
NoView == [ver |-> 0, isr |-> {}]

Init ==
    /\ log = [r \in Replicas |-> <<>>]      /\ synced = [r \in Replicas |-> 0]
    /\ known = [r \in Replicas |-> 0]       /\ inc = [r \in Replicas |-> 1]
    /\ newest = [r \in Replicas |-> IF r = First THEN 1 ELSE 0]
    /\ aligned = [r \in Replicas |-> r = First]
    /\ lead = [r \in Replicas |-> IF r = First THEN 1 ELSE 0]
    /\ view = [r \in Replicas |-> IF r = First THEN [ver |-> 1, isr |-> Replicas] ELSE NoView]
    /\ sets = [r \in Replicas |-> IF r = First THEN {Replicas} ELSE {}]
    /\ start = [r \in Replicas |-> 0]       /\ acks = [e \in Epochs |-> [r \in Replicas |-> NoAck]]
    /\ store = [ver |-> 1, epoch |-> 1, leader |-> First, isr |-> Replicas]
    /\ writes = {} /\ durable = <<>> /\ forked = FALSE
    /\ used = [crash |-> 0, loss |-> 0, write |-> 0]

--------------------------------------------------------------------------
(* The leader's journal, and its copies. An entry is its leader's epoch, and the life in which it was written. *)

AppendEntry(l) ==
    /\ lead[l] > 0 /\ Len(log[l]) < MaxLen
    /\ log' = [log EXCEPT ![l] = Append(@, [e |-> lead[l], life |-> <<l, inc[l]>>])]
    /\ UNCHANGED <<synced, known, inc, newest, aligned, lead, view, sets, start, acks, store, writes, durable, forked, used>>

\* Frames leave before the leader has written them itself: the follower may be ahead of the leader's disk.
Feed(l, f) ==
    /\ l # f /\ lead[l] > 0 /\ newest[f] = lead[l] /\ aligned[f] /\ lead[f] = 0
    /\ Len(log[f]) < Len(log[l])
    /\ log' = [log EXCEPT ![f] = Append(@, log[l][Len(log[f]) + 1])]
    /\ UNCHANGED <<synced, known, inc, newest, aligned, lead, view, sets, start, acks, store, writes, durable, forked, used>>

\* Nobody needs what a former leader knew: forgetting it keeps the state space small.
StepDown(r) ==
    /\ lead' = [lead EXCEPT ![r] = 0] /\ view' = [view EXCEPT ![r] = NoView]
    /\ sets' = [sets EXCEPT ![r] = {}] /\ start' = [start EXCEPT ![r] = 0]
NoLongerAwaited(r) == IF lead[r] > 0 THEN [acks EXCEPT ![lead[r]] = [f \in Replicas |-> NoAck]] ELSE acks
IsLed(e) == \E r \in Replicas : lead[r] = e

\* fdatasync, and the ack to the leader that the replica obeys (itself, if it leads).
SyncAndAck(r) ==
    /\ aligned[r] /\ newest[r] > 0
    /\ synced[r] < Len(log[r]) \/ (IsLed(newest[r]) /\ acks[newest[r]][r].pos < synced[r])
    /\ synced' = [synced EXCEPT ![r] = Len(log[r])]
    /\ acks' = IF IsLed(newest[r]) THEN [acks EXCEPT ![newest[r]][r] = [pos |-> Len(log[r]), inc |-> inc[r]]] ELSE acks
    /\ UNCHANGED <<log, known, inc, newest, aligned, lead, view, sets, start, store, writes, durable, forked, used>>

\* Where the two histories part, as far as epochs tell.
PartAt(f, l) ==
    LET both == Min(Len(log[f]), Len(log[l]))
    IN  CASE CutRule = "exact" -> Greatest({0} \cup {n \in 1..both : log[f][n].e = log[l][n].e})
          [] CutRule = "tail"  -> both
          [] CutRule = "none"  -> Len(log[f])
          [] CutRule = "known" -> Min(known[f], both)

\* Follower f begins to obey the leader l of an epoch: it is cut, durably, and tells what it has.
Obey(f, l) ==
    LET e == lead[l] n == PartAt(f, l)
    IN  /\ l # f /\ e > 0
        /\ (RefuseOldEpoch => e >= newest[f])
        /\ ~(aligned[f] /\ newest[f] = e) /\ lead[f] # e
        /\ log' = [log EXCEPT ![f] = Prefix(@, n)] /\ synced' = [synced EXCEPT ![f] = Min(@, n)]
        /\ newest' = [newest EXCEPT ![f] = e] /\ aligned' = [aligned EXCEPT ![f] = TRUE]
        /\ StepDown(f)
        /\ acks' = [NoLongerAwaited(f) EXCEPT ![e][f] = [pos |-> Min(synced[f], n), inc |-> inc[f]]]
        /\ UNCHANGED <<known, inc, store, writes, durable, forked, used>>

--------------------------------------------------------------------------
(* What is durable. *)

Advance(l) ==
    LET e == lead[l]
        Has(n) == {r \in UNION sets[l] : acks[e][r].pos >= n}
        IsDurable(n) == IF AwaitAll THEN Has(n) = UNION sets[l] ELSE Cardinality(Has(n)) >= MinInSync
        n == Greatest({0} \cup {k \in 1..Len(log[l]) : IsDurable(k)})
        common == Min(n, Len(durable))
    IN  /\ e > 0 /\ n > known[l]
        /\ \A s \in sets[l] : Cardinality(s) >= MinInSync
        /\ known' = [known EXCEPT ![l] = n]
        /\ forked' = (forked \/ Prefix(log[l], common) # Prefix(durable, common))
        /\ durable' = IF n > Len(durable) THEN Prefix(log[l], n) ELSE durable
        /\ UNCHANGED <<log, synced, inc, newest, aligned, lead, view, sets, start, acks, store, writes, used>>

\* A heartbeat: the follower folds up to there, but no further than its own journal is fsynced.
Learn(f, l) ==
    /\ l # f /\ lead[l] > 0 /\ newest[f] = lead[l] /\ aligned[f]
    /\ Min(known[l], synced[f]) > known[f]
    /\ known' = [known EXCEPT ![f] = Min(known[l], synced[f])]
    /\ UNCHANGED <<log, synced, inc, newest, aligned, lead, view, sets, start, acks, store, writes, durable, forked, used>>

--------------------------------------------------------------------------
(* The in-sync set: the leader asks the store; the answer may never come, and the write may come late. *)

Ask(l, s, add) ==
    /\ used.write < MaxWrites /\ used' = [used EXCEPT !.write = @ + 1]
    /\ writes' = writes \cup {[ver |-> view[l].ver, isr |-> s, add |-> add,
                               inc |-> IF add = l THEN 0 ELSE acks[lead[l]][add].inc]}
    /\ UNCHANGED <<log, synced, known, inc, newest, aligned, lead, view, start, acks, store, durable, forked>>

Bases(l) == IF OneAtATime THEN {s \in {view[l].isr} : sets[l] = {s}} ELSE sets[l]

\* The same set again, with a new version: when this is known to have succeeded, what was asked for before is dead.
Supersede(l) ==
    /\ lead[l] > 0 /\ Cardinality(sets[l]) > 1 /\ Ask(l, view[l].isr, l) /\ UNCHANGED sets

Add(l, f) ==
    /\ lead[l] > 0 /\ l # f /\ f \notin UNION sets[l]
    /\ acks[lead[l]][f].inc > 0 /\ acks[lead[l]][f].pos >= known[l]
    /\ JoinAtEpochStart => acks[lead[l]][f].pos >= start[l]
    /\ \E base \in Bases(l) :
        /\ Ask(l, base \cup {f}, f)
        /\ sets' = [sets EXCEPT ![l] = IF CountBeforeWrite THEN @ \cup {base \cup {f}} ELSE @]

Remove(l, f) ==
    /\ lead[l] > 0 /\ l # f
    /\ \E base \in Bases(l) :
        /\ f \in base /\ (KeepMin => Cardinality(base) > MinInSync)
        /\ Ask(l, base \ {f}, l)
        /\ sets' = [sets EXCEPT ![l] = IF CountUntilKnown THEN @ \cup {base \ {f}} ELSE {base \ {f}}]

StoreWrites(w) ==
    /\ w.ver = store.ver
    /\ CompareIncarnation => (w.inc = 0 \/ w.inc = inc[w.add])
    /\ store' = [store EXCEPT !.ver = @ + 1, !.isr = w.isr]
    /\ writes' = {}   \* all others were for this version, too: they fail
    /\ UNCHANGED <<log, synced, known, inc, newest, aligned, lead, view, sets, start, acks, durable, forked, used>>

\* An answer, a watch or a read: the leader sees the record as it stands.
ReadBack(l) ==
    /\ lead[l] > 0
    /\ IF store.epoch # lead[l]
       THEN StepDown(l) /\ acks' = NoLongerAwaited(l)
       ELSE /\ UNCHANGED <<lead, start, acks>>
            /\ \/ store.ver > view[l].ver
               \/ ~UnchangedProvesNothing /\ Cardinality(sets[l]) > 1
            /\ view' = [view EXCEPT ![l] = [ver |-> store.ver, isr |-> store.isr]] /\ sets' = [sets EXCEPT ![l] = {store.isr}]
    /\ UNCHANGED <<log, synced, known, inc, newest, aligned, store, writes, durable, forked, used>>

--------------------------------------------------------------------------
(* Elections, crashes. *)

Elect(r) ==
    /\ store.epoch < MaxEpoch /\ (ElectInSyncOnly => r \in store.isr)
    /\ store' = [ver |-> store.ver + 1, epoch |-> store.epoch + 1, leader |-> r, isr |-> store.isr \cup {r}]
    /\ writes' = {}
    /\ UNCHANGED <<log, synced, known, inc, newest, aligned, lead, view, sets, start, acks, durable, forked, used>>

\* The new leader keeps its whole tail. (Without NewEpochEachLife, it also goes on in its old epoch after a restart.)
TakeOver(r) ==
    LET e == store.epoch
    IN  /\ store.leader = r /\ lead[r] # e
        /\ e > newest[r] \/ (~NewEpochEachLife /\ e = newest[r])
        /\ r \in store.isr
        /\ lead' = [lead EXCEPT ![r] = e] /\ newest' = [newest EXCEPT ![r] = e]
        /\ aligned' = [aligned EXCEPT ![r] = TRUE] /\ start' = [start EXCEPT ![r] = Len(log[r])]
        /\ view' = [view EXCEPT ![r] = [ver |-> store.ver, isr |-> store.isr]] /\ sets' = [sets EXCEPT ![r] = {store.isr}]
        /\ acks' = [acks EXCEPT ![e][r] = [pos |-> synced[r], inc |-> inc[r]]]
        /\ UNCHANGED <<log, synced, known, inc, store, writes, durable, forked, used>>

Restart(r, n) ==
    /\ log' = [log EXCEPT ![r] = Prefix(@, n)] /\ synced' = [synced EXCEPT ![r] = n]
    /\ known' = [known EXCEPT ![r] = Min(@, n)]
    /\ inc' = [inc EXCEPT ![r] = @ + 1] /\ aligned' = [aligned EXCEPT ![r] = FALSE]
    /\ StepDown(r) /\ acks' = NoLongerAwaited(r)
    /\ UNCHANGED <<newest, durable, forked>>

\* kill -9, or a loss of power under fsync: any part of what was not fsynced is gone.
Crash(r) ==
    /\ used.crash < MaxCrash /\ used' = [used EXCEPT !.crash = @ + 1]
    /\ \E n \in synced[r]..Len(log[r]) : Restart(r, n)
    /\ UNCHANGED <<store, writes>>

\* A loss of power under `os`, a restored backup: some of what was acked is gone, and the replica knows that it may be.
Lose(r) ==
    /\ used.loss < MaxLoss /\ used' = [used EXCEPT !.loss = @ + 1]
    /\ synced[r] > 0 /\ \E n \in 0..(synced[r] - 1) : Restart(r, n)
    /\ IF RemoveUnclean /\ r \in store.isr
       THEN store' = [store EXCEPT !.ver = @ + 1, !.isr = @ \ {r}] /\ writes' = {}
       ELSE UNCHANGED <<store, writes>>

Next ==
    \/ \E r \in Replicas : AppendEntry(r) \/ SyncAndAck(r) \/ Advance(r) \/ ReadBack(r) \/ Elect(r) \/ TakeOver(r)
                           \/ Crash(r) \/ Lose(r) \/ Supersede(r)
    \/ \E l, f \in Replicas : Feed(l, f) \/ Obey(l, f) \/ Learn(l, f) \/ Add(l, f) \/ Remove(l, f)
    \/ \E w \in writes : StoreWrites(w)

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------
(* What must hold. *)

\* Two leaders never make different entries durable at one position.
OneHistory == ~forked

\* The leader of the newest epoch has all that was ever durable.
LeaderHasAll == \A r \in Replicas : (lead[r] > 0 /\ lead[r] = store.epoch) => IsPrefix(durable, log[r])

\* What a replica has folded and shown never changes, and is the same everywhere (I1, P7).
ShownStays == \A r \in Replicas : known[r] <= Len(log[r]) /\ Prefix(log[r], known[r]) = Prefix(durable, known[r])

\* As long as fewer replicas than MinInSync have lost what they acked, there is somebody to elect.
SomebodyIsInSync == used.loss < MinInSync => store.isr # {}

\* The replicas that do not lead first may be exchanged for one another.
Symmetry == Permutations(Replicas \ {First})

\* One leader for each epoch.
OneLeader == \A r, s \in Replicas : (lead[r] > 0 /\ lead[r] = lead[s]) => r = s
=============================================================================
