---------------------------- MODULE Transactions ----------------------------
(***************************************************************************)
(* Transactions over several shards (CLUSTER.md, section 4): one metadata   *)
(* journal J with its coordinator, and participants in other shards, each   *)
(* with failover. Replication.tla shows what a journal may be relied upon   *)
(* for, and here that is all there is of it: what is durable stays; a new   *)
(* leader has any part of what was behind it; a deposed leader goes on, and *)
(* makes nothing durable but what its successor had as well.                *)
(*                                                                          *)
(* One client runs transactions 1, 2, .. under one producer id and epoch    *)
(* (a client of transactions v1). In each it adds partitions, sends one     *)
(* message to each, and asks for commit or abort, if need be again, at any  *)
(* coordinator that believes to be one. Messages between brokers may be     *)
(* delayed for ever, repeated and overtaken.                                *)
(*                                                                          *)
(* Two parts may be left out of a run, since they make many states. With    *)
(* MaxHand, a participant's leader may hand over in order: its successor    *)
(* then knows what it knew, and no draft is lost. With Forgets, the         *)
(* coordinator ends transactions, participants forget them, the client      *)
(* sends messages again, and requests about what is long over come late.    *)
(*                                                                          *)
(* Left out: group order (GroupOrder.tla), producers' epochs, timeouts,     *)
(* topics that are deleted, leases.                                         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Parts, Nobody,
    MaxTx, MaxJ, MaxP,  \* bounds: transactions of the client, epochs of J, failovers of participants in all,
    MaxHand, Forgets,   \* handovers that are begun, in all; whether participants forget
    \* --- the rules ---------------------------------------------------------
    AddDurable,      \* a partition is added, for the client, when BEGIN and ADD are durable
    AbortDurable,    \* the client is told of an abort when PREPARE_ABORT is durable
    DiscardDurable,  \* DISCARD is sent when PREPARE_ABORT is durable
    Fence,           \* a participant takes nothing from an older coordinator than it has heard of
    PreparedEpoch,   \* PREPARED holds the coordinator's epoch; decisions of older ones are refused
    Raise,           \* what is PREPARED is PREPARED again under a new coordinator's epoch
    LostByEpoch,     \* PREPARE names the participant's epoch of the time of the ADD; a later leader answers LOST
    FirstEpochStays, \* a partition that is added again keeps the epoch of its first ADD
    Barrier,         \* a new leader answers nothing before every in-sync replica is aligned with it: is cut where their
                     \* histories part, and has its whole tail (that the tail is durable says nothing if it is empty)
    FinalAck,        \* a repeated EndTxn is answered when the outcome is final
    Confirm,         \* what is answered from memory (a repeated EndTxn, a partition added before) is answered only by who
                     \* still leads: by its lease, or because the in-sync set confirms it
    PromiseEpoch,    \* PREPARED holds the participant's epoch as well; whoever names another one is told LOST
    HandoverStops,   \* who hands over takes no drafts and answers nothing, until it is known to have failed
    HandoverVoid,    \* what a successor was told counts only for the epoch that its predecessor's own write has made,
    HandoverReaches, \* and only if its journal reaches the position that was named with it
    HandoverToken,   \* the store is asked only once the successor has what it was told this time, not an earlier time
    HandoverFences,  \* a successor is told the newest coordinator epoch as well: no LOST keeps a deposed one out
    TellNewer,       \* a TxId is told only if it is newer than all that were told, decided or finished here
    FinishedStays,   \* a participant keeps the highest finished TxId; what is at or below it is answered without an entry
    DiscardSpares,   \* DISCARD forgets the sequences only if nothing newer of the producer is here
    OpenGoesOn       \* after a takeover of J, open transactions go on (off: they are aborted, and the client must abort)

VARIABLES
    jlog, jep, jdur,     \* J: the journal of each epoch's leader, the newest epoch, how much of its journal is durable
    rep,                 \* rep[ce]: answers that the coordinator of epoch ce has heard: <<txid, partition, "yes"|"no">>
    plog, pdur, pep, pstart, \* each participant's journal, durable part, epoch, tail at takeover until it is aligned
    other,               \* the journal of its last leader: until it is aligned, a replica may be elected with that tail
    told, heard,         \* of a participant's leader: TxId that drafts belong to; newest coordinator epoch
    top, since,          \* and the highest TxId it was told; the epoch since which it holds all drafts that were acked
    offer, hands,        \* a handover that is under way, and what the successor was told; how many there were
    msgs,                \* requests of coordinators to participants
    cl,                  \* the client: number of its transaction, phase, added, sent, coordinators asked
    out, sentOf, asked   \* ghosts: what the client was told of each transaction, what it sent, whether it asked to commit

jvars == <<jlog, jep, jdur, rep>>
lead == <<told, heard, top, since, offer, hands>>  \* what a participant's leader has in memory
pvars == <<plog, pdur, pep, pstart, other, lead>>
cvars == <<cl, out, sentOf, asked>>
vars == <<jlog, jep, jdur, rep, plog, pdur, pep, pstart, other, told, heard, top, since, offer, hands, msgs, cl, out, sentOf, asked>>

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Prefix(s, n) == SubSeq(s, 1, n)
Range(s) == {s[i] : i \in 1..Len(s)}
Common(s, t) == CHOOSE n \in 0..Min(Len(s), Len(t)) : /\ Prefix(s, n) = Prefix(t, n)
                                                       /\ (n < Min(Len(s), Len(t)) => s[n + 1] # t[n + 1])
Coordinators == 1..jep
Txs == 1..MaxTx
NoTx == <<0, 0>>  \* a TxId: the coordinator's epoch, a number
Newer(t, u) == t[1] > u[1] \/ (t[1] = u[1] /\ t[2] > u[2])
Latest(T) == IF T = {} THEN NoTx ELSE CHOOSE t \in T : \A u \in T : t = u \/ Newer(t, u)
Aligned == -1
NoOffer == [asks |-> FALSE, pos |-> 0, told |-> NoTx, top |-> NoTx, heard |-> 0, since |-> 0]

Init ==
    /\ jlog = [e \in 1..MaxJ |-> <<>>] /\ jep = 1 /\ jdur = 0 /\ rep = [e \in 1..MaxJ |-> {}]
    /\ plog = [p \in Parts |-> <<>>] /\ pdur = [p \in Parts |-> 0] /\ pep = [p \in Parts |-> 1]
    /\ pstart = [p \in Parts |-> Aligned] /\ other = [p \in Parts |-> <<>>]
    /\ told = [p \in Parts |-> NoTx] /\ heard = [p \in Parts |-> 0]
    /\ top = [p \in Parts |-> NoTx] /\ since = [p \in Parts |-> 1]
    /\ offer = [p \in Parts |-> NoOffer] /\ hands = 0
    /\ msgs = {}
    /\ cl = [k |-> 1, phase |-> "run", added |-> {}, adding |-> {}, sent |-> {}, at |-> {}, wrote |-> {}]
    /\ out = [k \in Txs |-> "open"] /\ sentOf = [k \in Txs |-> {}] /\ asked = [k \in Txs |-> FALSE]

--------------------------------------------------------------------------
(* The folds. *)

JE(w, k, t, p, e) == [w |-> w, k |-> k, t |-> t, p |-> p, e |-> e]  \* w: the coordinator that wrote it
Known(j) == {x.t : x \in Range(j)}
Has(j, k, t) == \E x \in Range(j) : x.k = k /\ x.t = t
Phase(j, t) == CASE Has(j, "abort", t) -> "abort" [] Has(j, "commit", t) -> "commit" [] OTHER -> "open"
Current(j) == IF \E t \in Known(j) : Phase(j, t) = "open" THEN CHOOSE t \in Known(j) : Phase(j, t) = "open" ELSE NoTx
Last(j) == Latest(Known(j))
Members(j, t) == {x.p : x \in {y \in Range(j) : y.k = "add" /\ y.t = t}}
EpochOf(j, t, p) == \* of the first ADD, or of the last one
    LET at == {i \in 1..Len(j) : j[i].k = "add" /\ j[i].t = t /\ j[i].p = p}
    IN  j[CHOOSE i \in at : \A o \in at : IF FirstEpochStays THEN i <= o ELSE i >= o].e
At(j, k, t) == CHOOSE i \in 1..Len(j) : j[i].k = k /\ j[i].t = t

\* Whether coordinator ce may take entry i of its journal for durable.
IsDurable(ce, i) == i <= jdur /\ i <= Common(jlog[ce], jlog[jep])

IsInherited(ce, i) == ce > 1 /\ i <= Common(jlog[ce], jlog[ce - 1])

PE(k, t, v, ce, pe) == [k |-> k, t |-> t, v |-> v, ce |-> ce, pe |-> pe]
Forgotten(l) == {x.t : x \in {y \in Range(l) : y.k = "forget"}}
\* What the participant still knows of t: nothing from before it forgot t.
KnownOf(l, t) == LET first == IF t \in Forgotten(l) THEN At(l, "forget", t) + 1 ELSE 1
                 IN  {x \in Range(SubSeq(l, first, Len(l))) : x.t = t}
Outcome(known) == CASE \E x \in known : x.k = "apply" -> "applied"
                    [] \E x \in known : x.k = "discard" -> "discarded"
                    [] \E x \in known : x.k = "prepared" -> "prepared"
                    [] OTHER -> "open"
Standing(l, t) == IF FinishedStays /\ \E u \in Forgotten(l) : t = u \/ Newer(u, t) THEN "finished" ELSE Outcome(KnownOf(l, t))
PreparedBy(l, t) == LET by == {x.ce : x \in {y \in KnownOf(l, t) : y.k = "prepared"}}
                    IN IF by = {} THEN 0 ELSE CHOOSE e \in by : \A o \in by : e >= o
\* Whether the promise was made to one who named another epoch: then drafts may be missing in it.
IsOtherPromise(l, t, e) == PromiseEpoch /\ \E x \in Range(l) : x.t = t /\ x.k = "prepared" /\ x.pe # e
Shown(p) == Prefix(plog[p], pdur[p])
Stops(p) == HandoverStops /\ offer[p].asks
IsAligned(p) == IF Barrier THEN pstart[p] = Aligned ELSE pdur[p] >= pstart[p]
IsReady(p) == IsAligned(p) /\ ~Stops(p)
Hears(p, ce) == IsReady(p) /\ (Fence => ce >= heard[p])
Listen(p, ce) == heard' = IF Fence THEN [heard EXCEPT ![p] = Max(@, ce)] ELSE heard
\* Whether drafts may be missing that were acked since epoch e.
IsShort(p, e) == LostByEpoch /\ since[p] > e
CanBeTold(p, t) ==
    IF TellNewer THEN Newer(t, Latest({top[p]} \cup {x.t : x \in {y \in Range(plog[p]) : y.k # "draft"}}))
                 ELSE t # told[p] /\ Standing(plog[p], t) = "open"
Hear(p, t) == IF CanBeTold(p, t) THEN /\ told' = [told EXCEPT ![p] = t]
                                      /\ top' = [top EXCEPT ![p] = Latest({@, t})]
                                 ELSE UNCHANGED <<told, top>>
Write(p, x) == plog' = [plog EXCEPT ![p] = Append(@, x)]
Decided(ce, t) == /\ Phase(jlog[ce], t) = "commit" /\ IsDurable(ce, At(jlog[ce], "commit", t))
                  /\ \A p \in Members(jlog[ce], t) : <<t, p, "yes">> \in rep[ce]

--------------------------------------------------------------------------
(* The client, and what the coordinator does for it. *)

\* In doubt: the client's transaction was begun under an older coordinator, and the new one does not let it go on.
InDoubt(ce) == ~OpenGoesOn /\ ce > 1 /\ \E o \in cl.at \cup cl.adding : o < ce

Finish(what) ==
    /\ out' = [out EXCEPT ![cl.k] = what]
    /\ cl' = [k |-> cl.k + 1, phase |-> IF cl.k = MaxTx THEN "end" ELSE "run",
              added |-> {}, adding |-> {}, sent |-> {}, at |-> {}, wrote |-> {}]

\* AddPartitionsToTxn: BEGIN and ADD, and the participant is told the TxId.
AddPartition(ce, p) ==
    LET j == jlog[ce] cur == Current(j) t == IF cur = NoTx THEN <<ce, cl.k>> ELSE cur
        begin == IF cur = NoTx THEN <<JE(ce, "begin", t, Nobody, 0)>> ELSE <<>>
        add == IF p \in Members(j, t) /\ FirstEpochStays THEN <<>>
               ELSE IF \E x \in Range(j) : x.k = "add" /\ x.t = t /\ x.p = p /\ x.e = pep[p] THEN <<>>
               ELSE <<JE(ce, "add", t, p, pep[p])>>
    IN  /\ cl.phase = "run" /\ ~InDoubt(ce)
        /\ cur = NoTx => ~Has(j, "begin", t)
        /\ Hears(p, ce) /\ Listen(p, ce)
        /\ Hear(p, t)
        /\ msgs' = IF Forgets THEN msgs \cup {[m |-> "tell", t |-> t, p |-> p, ce |-> ce, e |-> 0]} ELSE msgs
        /\ jlog' = [jlog EXCEPT ![ce] = @ \o begin \o add]
        /\ cl' = [cl EXCEPT !.adding = @ \cup {ce}, !.added = IF AddDurable THEN @ ELSE @ \cup {p}]
        /\ <<jlog, told, cl>>' # <<jlog, told, cl>>
        /\ UNCHANGED <<jep, jdur, rep, plog, pdur, pep, pstart, other, since, offer, hands, out, sentOf, asked>>

\* The same, late and again.
GetTell(m) ==
    /\ m.m = "tell" /\ Hears(m.p, m.ce) /\ Listen(m.p, m.ce) /\ Hear(m.p, m.t)
    /\ UNCHANGED <<jvars, plog, pdur, pep, pstart, other, since, offer, hands, msgs, cvars>>

\* With AddDurable the client hears of it later.
Added(ce, p) ==
    LET j == jlog[ce] t == Current(j)
    IN  /\ AddDurable /\ cl.phase = "run" /\ p \notin cl.added /\ ce \in cl.adding /\ t # NoTx /\ p \in Members(j, t)
        /\ \A i \in 1..Len(j) : j[i].t = t /\ j[i].p \in {Nobody, p} => IsDurable(ce, i)
        /\ Confirm => ce = jep
        /\ cl' = [cl EXCEPT !.added = @ \cup {p}]
        /\ UNCHANGED <<jvars, pvars, msgs, out, sentOf, asked>>

\* A draft: acked when written, so a failover may lose it.
Send(p) ==
    /\ cl.phase = "run" /\ p \in cl.added \ cl.sent /\ told[p] # NoTx /\ IsReady(p)
    /\ Write(p, PE("draft", told[p], cl.k, 0, 0))
    /\ cl' = [cl EXCEPT !.sent = @ \cup {p}] /\ sentOf' = [sentOf EXCEPT ![cl.k] = @ \cup {p}]
    /\ UNCHANGED <<jvars, pdur, pep, pstart, other, lead, msgs, out, asked>>

\* The client has not heard of the ack, and sends the message again. By its sequence it is known to be there, unless
\* sequences were forgotten: a DISCARD does that, since a crash may have taken drafts that were acked.
IsKnownHere(p) == \E i \in 1..Len(plog[p]) :
    /\ plog[p][i].k = "draft" /\ plog[p][i].v = cl.k
    /\ \A o \in i..Len(plog[p]) : plog[p][o].k = "discard" => DiscardSpares /\ Newer(plog[p][i].t, plog[p][o].t)
Resend(p) ==
    /\ Forgets /\ cl.phase = "run" /\ p \in cl.sent /\ told[p] # NoTx /\ IsReady(p) /\ ~IsKnownHere(p)
    /\ Write(p, PE("draft", told[p], cl.k, 0, 0))
    /\ UNCHANGED <<jvars, pdur, pep, pstart, other, lead, msgs, cvars>>

Decide(what) ==
    /\ cl.phase = "run" /\ (what = "commit" => cl.sent = Parts) /\ (what = "abort" => cl.sent # {})
    /\ cl' = [cl EXCEPT !.phase = what] /\ asked' = [asked EXCEPT ![cl.k] = (what = "commit")]
    /\ UNCHANGED <<jvars, pvars, msgs, out, sentOf>>

\* EndTxn arrives at a coordinator; the client asks another one if it hears nothing.
EndTxn(ce) ==
    LET j == jlog[ce] t == Current(j)
    IN  /\ cl.phase \in {"commit", "abort"} /\ ce \notin cl.at
        /\ IF InDoubt(ce)
           THEN /\ Finish(IF Last(j) # NoTx /\ Phase(j, Last(j)) = "commit" THEN "unknown" ELSE "aborted")
                /\ jlog' = IF t # NoTx THEN [jlog EXCEPT ![ce] = Append(@, JE(ce, "abort", t, Nobody, 0))] ELSE jlog
                /\ UNCHANGED msgs
           ELSE /\ cl' = [cl EXCEPT !.at = @ \cup {ce}, !.wrote = IF t = NoTx THEN @ ELSE @ \cup {ce}]
                /\ UNCHANGED out
                /\ IF t = NoTx THEN UNCHANGED <<jlog, msgs>>
                   ELSE /\ jlog' = [jlog EXCEPT ![ce] = Append(@, JE(ce, cl.phase, t, Nobody, 0))]
                        /\ msgs' = IF cl.phase = "abort" THEN msgs ELSE
                             msgs \cup {[m |-> "prepare", t |-> t, p |-> p, ce |-> ce, e |-> EpochOf(j, t, p)] : p \in Members(j, t)}
        /\ UNCHANGED <<jep, jdur, rep, pvars, sentOf, asked>>

\* The client hears that its transaction is committed. A coordinator can't tell a repeated EndTxn from one of a
\* transaction that it does not know: it answers for the last one that it knows.
AckCommit(ce) ==
    LET t == Last(jlog[ce])
    IN  /\ cl.phase = "commit" /\ ce \in cl.at /\ t # NoTx
        /\ \/ Decided(ce, t)
           \/ Phase(jlog[ce], t) = "commit" /\ Has(jlog[ce], "ended", t) /\ IsDurable(ce, At(jlog[ce], "ended", t))
           \/ ~FinalAck /\ Phase(jlog[ce], t) = "commit" /\ IsInherited(ce, At(jlog[ce], "commit", t))
        /\ Confirm => (ce \in cl.wrote \/ ce = jep)
        /\ Finish("committed")
        /\ UNCHANGED <<jvars, pvars, msgs, sentOf, asked>>

AckAbort(ce) ==
    LET t == Last(jlog[ce])
    IN  /\ cl.phase \in {"commit", "abort"} /\ ce \in cl.at /\ t # NoTx /\ Phase(jlog[ce], t) = "abort"
        /\ Confirm => (ce \in cl.wrote \/ ce = jep)
        /\ AbortDurable => IsDurable(ce, At(jlog[ce], "abort", t))
        /\ Finish("aborted")
        /\ UNCHANGED <<jvars, pvars, msgs, sentOf, asked>>

--------------------------------------------------------------------------
(* The coordinator and the participants. *)

\* A participant's answer to PREPARE comes when PREPARED is durable; LOST comes at once.
GetPrepare(m) ==
    LET p == m.p t == m.t st == Standing(plog[p], t)
        refuses == \/ st = "discarded" \/ (st = "open" /\ IsShort(p, m.e))
                   \/ st = "prepared" /\ IsOtherPromise(plog[p], t, m.e)
    IN  /\ m.m = "prepare" /\ Hears(p, m.ce) /\ Listen(p, m.ce) /\ st # "finished"
        /\ IF refuses
           THEN rep' = [rep EXCEPT ![m.ce] = @ \cup {<<t, p, "no">>}] /\ UNCHANGED <<plog, told>>
           ELSE /\ UNCHANGED rep
                /\ IF st # "applied" /\ PreparedBy(plog[p], t) < (IF Raise THEN m.ce ELSE 1)
                   THEN /\ Write(p, PE("prepared", t, 0, m.ce, m.e))
                        /\ told' = IF told[p] = t THEN [told EXCEPT ![p] = NoTx] ELSE told
                   ELSE UNCHANGED <<plog, told>>
        /\ UNCHANGED <<jlog, jep, jdur, pdur, pep, pstart, other, top, since, offer, hands, msgs, cvars>>

Promised(m) ==
    /\ m.m = "prepare" /\ IsReady(m.p)
    /\ Fence => (m.ce >= heard[m.p] /\ m.ce >= PreparedBy(plog[m.p], m.t))  \* no promise for a deposed coordinator
    /\ \/ PreparedBy(Shown(m.p), m.t) >= (IF Raise THEN m.ce ELSE 1) /\ Standing(plog[m.p], m.t) = "prepared"
          /\ ~IsOtherPromise(plog[m.p], m.t, m.e)
       \/ Standing(Shown(m.p), m.t) = "applied"
    /\ rep' = [rep EXCEPT ![m.ce] = @ \cup {<<m.t, m.p, "yes">>}]
    /\ UNCHANGED <<jlog, jep, jdur, pvars, msgs, cvars>>

\* After a takeover: what was prepared is prepared again, under the new epoch.
PrepareAgain(ce, t, p) ==
    /\ Phase(jlog[ce], t) = "commit" /\ IsInherited(ce, At(jlog[ce], "commit", t)) /\ p \in Members(jlog[ce], t)
    /\ msgs' = msgs \cup {[m |-> "prepare", t |-> t, p |-> p, ce |-> ce, e |-> EpochOf(jlog[ce], t, p)]}
    /\ UNCHANGED <<jvars, pvars, cvars>>

\* A participant has lost drafts: no ack was given, the transaction aborts.
Lost(ce, t) ==
    /\ Phase(jlog[ce], t) = "commit" /\ \E p \in Parts : <<t, p, "no">> \in rep[ce]
    /\ jlog' = [jlog EXCEPT ![ce] = Append(@, JE(ce, "abort", t, Nobody, 0))]
    /\ UNCHANGED <<jep, jdur, rep, pvars, msgs, cvars>>

Tell(ce, t, what) ==
    /\ \/ what = "apply" /\ Decided(ce, t)
       \/ what = "discard" /\ Phase(jlog[ce], t) = "abort"
          /\ (DiscardDurable => IsDurable(ce, At(jlog[ce], "abort", t)))
    /\ msgs' = msgs \cup {[m |-> what, t |-> t, p |-> p, ce |-> ce, e |-> 0] : p \in Members(jlog[ce], t)}
    /\ UNCHANGED <<jvars, pvars, cvars>>

GetDecision(m) ==
    LET p == m.p st == Standing(plog[p], m.t) done == IF m.m = "apply" THEN "applied" ELSE "discarded"
    IN  /\ m.m \in {"apply", "discard"} /\ Hears(p, m.ce) /\ Listen(p, m.ce)
        /\ PreparedEpoch => m.ce >= PreparedBy(plog[p], m.t)
        /\ st \notin {done, "finished"}
        /\ Write(p, PE(m.m, m.t, 0, m.ce, 0))
        /\ told' = IF told[p] = m.t THEN [told EXCEPT ![p] = NoTx] ELSE told
        /\ UNCHANGED <<jvars, pdur, pep, pstart, other, top, since, offer, hands, msgs, cvars>>

\* Every participant has what was decided, durably: nobody will ask again.
End(ce, t) ==
    LET outcome == IF Phase(jlog[ce], t) = "commit" THEN "applied" ELSE "discarded"
    IN  /\ Forgets /\ ce = jep /\ Phase(jlog[ce], t) # "open" /\ ~Has(jlog[ce], "ended", t)
        /\ \A p \in Members(jlog[ce], t) : Outcome(KnownOf(Shown(p), t)) = outcome
        /\ jlog' = [jlog EXCEPT ![ce] = Append(@, JE(ce, "ended", t, Nobody, 0))]
        /\ UNCHANGED <<jep, jdur, rep, pvars, msgs, cvars>>

\* A participant is told so, and forgets.
Forget(p, t) ==
    /\ Has(Prefix(jlog[jep], jdur), "ended", t) /\ p \in Members(jlog[jep], t)
    /\ t \notin Forgotten(plog[p]) /\ IsReady(p) /\ Write(p, PE("forget", t, 0, 0, 0))
    /\ UNCHANGED <<jvars, pdur, pep, pstart, other, lead, msgs, cvars>>

--------------------------------------------------------------------------
(* Journals: what becomes durable, and failovers. *)

Sync == /\ jdur < Len(jlog[jep]) /\ jdur' = Len(jlog[jep])
        /\ UNCHANGED <<jlog, jep, rep, pvars, msgs, cvars>>

SyncPart(p) == /\ pdur[p] < Len(plog[p]) /\ pdur' = [pdur EXCEPT ![p] = Len(plog[p])]
               /\ UNCHANGED <<jvars, plog, pep, pstart, other, lead, msgs, cvars>>

\* The new coordinator has made its tail durable; the old one goes on, and does not know.
FailJ == /\ jep < MaxJ
         /\ \E n \in jdur..Len(jlog[jep]) :
              LET kept == Prefix(jlog[jep], n) cur == Current(kept)
                  dropped == IF ~OpenGoesOn /\ cur # NoTx THEN <<JE(jep + 1, "abort", cur, Nobody, 0)>> ELSE <<>>
              IN jlog' = [jlog EXCEPT ![jep + 1] = kept \o dropped] /\ jdur' = n
         /\ jep' = jep + 1
         /\ UNCHANGED <<rep, pvars, msgs, cvars>>

Failovers == LET RECURSIVE sum(_) sum(S) == IF S = {} THEN 0 ELSE LET p == CHOOSE p \in S : TRUE IN pep[p] - 1 + sum(S \ {p})
             IN sum(Parts)

\* A new leader, which has the journal of `from` up to n, and knows what the former one has told it, or nothing.
Succeed(p, from, n, isTold) ==
    LET knows == isTold /\ (HandoverReaches => n >= offer[p].pos)
    IN  /\ plog' = [plog EXCEPT ![p] = Prefix(from, n)] /\ pstart' = [pstart EXCEPT ![p] = n]
        /\ other' = [other EXCEPT ![p] = plog[p]] /\ pep' = [pep EXCEPT ![p] = @ + 1]
        /\ told' = [told EXCEPT ![p] = IF knows THEN offer[p].told ELSE NoTx]
        /\ top' = [top EXCEPT ![p] = IF knows THEN offer[p].top ELSE NoTx]
        /\ heard' = [heard EXCEPT ![p] = IF knows /\ HandoverFences THEN offer[p].heard ELSE 0]
        /\ since' = [since EXCEPT ![p] = IF knows THEN offer[p].since ELSE pep[p] + 1]
        /\ offer' = [offer EXCEPT ![p] = NoOffer]
        /\ UNCHANGED <<jvars, pdur, hands, msgs, cvars>>

\* A leader is gone, or deposed, and a replica is elected.
FailPart(p) ==
    /\ Failovers < MaxP + hands
    /\ \E from \in {plog[p], other[p]} : \E n \in pdur[p]..Len(from) :
         /\ Common(from, plog[p]) >= pdur[p]
         /\ \E isTold \in (IF HandoverVoid THEN {FALSE} ELSE {FALSE, offer[p].since > 0}) : Succeed(p, from, n, isTold)

\* Every in-sync replica has the leader's tail, and nothing else.
Align(p) ==
    /\ Barrier /\ ~IsAligned(p) /\ pdur[p] >= pstart[p] /\ pstart' = [pstart EXCEPT ![p] = Aligned]
    /\ other' = [other EXCEPT ![p] = Shown(p)]
    /\ UNCHANGED <<jvars, plog, pdur, pep, lead, msgs, cvars>>

\* A leader tells a follower all that it knows, and asks the store to let that one lead.
Offer(p) ==
    /\ hands < MaxHand /\ ~offer[p].asks /\ IsReady(p) /\ hands' = hands + 1
    /\ \E arrives \in (IF HandoverToken THEN {TRUE} ELSE BOOLEAN) :
         offer' = [offer EXCEPT ![p] = IF arrives THEN [asks |-> TRUE, pos |-> Len(plog[p]), told |-> told[p], top |-> top[p],
                                                        heard |-> heard[p], since |-> since[p]]
                                                  ELSE [@ EXCEPT !.asks = TRUE]]
    /\ UNCHANGED <<jvars, plog, pdur, pep, pstart, other, told, heard, top, since, msgs, cvars>>

\* The store does so. The follower may have crashed meanwhile, and be shorter.
HandOver(p) == offer[p].asks /\ \E n \in pdur[p]..Len(plog[p]) : Succeed(p, plog[p], n, offer[p].since > 0)

\* The store is known never to do so: the leader goes on. The follower does not know that.
Withdraw(p) ==
    /\ offer[p].asks /\ offer' = [offer EXCEPT ![p].asks = FALSE]
    /\ UNCHANGED <<jvars, plog, pdur, pep, pstart, other, told, heard, top, since, hands, msgs, cvars>>

New(step) == step /\ vars' # vars

Next ==
    \/ \E ce \in Coordinators : \/ \E p \in Parts : AddPartition(ce, p) \/ Added(ce, p)
                                \/ EndTxn(ce) \/ AckCommit(ce) \/ AckAbort(ce)
                                \/ \E t \in Known(jlog[ce]) : \/ Lost(ce, t) \/ End(ce, t)
                                                              \/ \E w \in {"apply", "discard"} : New(Tell(ce, t, w))
                                                              \/ \E p \in Parts : New(PrepareAgain(ce, t, p))
    \/ \E p \in Parts : \/ Send(p) \/ Resend(p) \/ SyncPart(p) \/ Align(p) \/ FailPart(p) \/ Offer(p) \/ HandOver(p) \/ Withdraw(p)
                       \/ \E t \in Known(jlog[jep]) : Forget(p, t)
    \/ \E m \in msgs : New(GetTell(m)) \/ New(GetPrepare(m)) \/ New(Promised(m)) \/ GetDecision(m)
    \/ Decide("commit") \/ Decide("abort") \/ Sync \/ FailJ

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------
(* What must hold. `k` is a transaction as the client sees it; its messages bear its number. *)

Decisions(l, t) == Outcome({x \in Range(l) : x.t = t})  \* those that are forgotten as well
Applied(p) == {t \in {x.t : x \in Range(Shown(p))} : Decisions(Shown(p), t) = "applied"}
VisibleAt(p) == {i \in 1..pdur[p] : plog[p][i].k = "draft" /\ plog[p][i].t \in Applied(p)}
Visible(p) == {plog[p][i].v : i \in VisibleAt(p)}
\* The message of k in p is promised, or visible.
Safe(p, k) == \E x \in Range(Shown(p)) : x.k = "draft" /\ x.v = k /\ Decisions(plog[p], x.t) \in {"prepared", "applied"}
                                         /\ Phase(Prefix(jlog[jep], jdur), x.t) = "commit"

\* What was acked is never lost or torn (P2).
AckedStays == \A k \in Txs : out[k] = "committed" => \A p \in sentOf[k] : Safe(p, k)
\* What is visible in one partition is, or will be, in all (P2).
NeverTorn == \A p \in Parts : \A k \in Visible(p) : \A q \in sentOf[k] : Safe(q, k)
\* What was aborted, or never asked to be committed, is never visible (P1).
NeverAborted == \A p \in Parts : \A k \in Visible(p) : out[k] # "aborted" /\ asked[k]
\* No message is visible twice (P2).
NeverTwice == \A p \in Parts : \A i, o \in VisibleAt(p) : i # o => plog[p][i].v # plog[p][o].v
\* I4.
Exclusive == \A p \in Parts : \A x, y \in Range(plog[p]) : ~(x.t = y.t /\ x.k = "apply" /\ y.k = "discard")
\* Nothing is promised that nobody will end: whoever asks for the end of the partition would wait for it (P8).
NoGhost == \A p \in Parts : \A i, o \in 1..Len(plog[p]) :
    ~(i < o /\ plog[p][i].k = "forget" /\ plog[p][o].k = "prepared" /\ plog[p][i].t = plog[p][o].t)

\* Participants may be exchanged for one another.
Symmetry == Permutations(Parts)
=============================================================================
