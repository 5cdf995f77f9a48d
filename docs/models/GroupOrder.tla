----------------------------- MODULE GroupOrder -----------------------------
(***************************************************************************)
(* Transactions of one group become visible in one order everywhere (P5),   *)
(* while coordinator and participants fail over and links repeat, delay and *)
(* overtake messages.                                                       *)
(*                                                                          *)
(* The coordinator's journal J holds decisions in an order. A decision to   *)
(* commit is final once every participant has promised, and is taken back   *)
(* (an abort) if one of them has lost drafts; which of the two is chance    *)
(* here, and Transactions.tla shows that it can be told. APPLY is sent to   *)
(* each participant, and names the transaction of the group that comes      *)
(* before it in that participant; the participant takes it only after that  *)
(* one. So the order is a matter of what messages say, and not of the       *)
(* links that bring them.                                                   *)
(*                                                                          *)
(* A journal is what Replication.tla promises: what is durable stays, a new *)
(* leader has any part of the rest, a deposed leader makes nothing durable. *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Parts, MaxTx,        \* participants; transactions of the group
    MaxJ, MaxP,          \* bounds: coordinators, failovers of participants in all
    \* --- the rules ---------------------------------------------------------
    WaitsForEarlier,     \* APPLY is sent when all that is earlier in the group is final
    NamesPredecessor,    \* APPLY names what comes before it, and is taken only after that
    EndsWhenDurable,     \* a participant has answered when its APPLY is durable, and only then need not be named
    FinalIsDurable,      \* a decision is final when it is durable, an abort as well
    SkipsAborted         \* what was taken back is not named: nobody will apply it

VARIABLES
    members,             \* the participants of each transaction
    jlog, jep, jdur,     \* J's decisions, of each coordinator; the newest coordinator; how many are durable
    promised,            \* transactions of which every participant has promised, and those with a participant that can't
    broken,
    plog, pdur, fails,   \* each participant's APPLYs in order; how many are durable; failovers so far
    answered,            \* what each coordinator knows as applied: <<transaction, participant>>
    msgs

vars == <<members, jlog, jep, jdur, promised, broken, plog, pdur, fails, answered, msgs>>

Prefix(s, n) == SubSeq(s, 1, n)
Range(s) == {s[i] : i \in 1..Len(s)}
Min(a, b) == IF a < b THEN a ELSE b
Txs == 1..MaxTx
Coordinators == 1..jep
Common(s, t) == CHOOSE n \in 0..Min(Len(s), Len(t)) : /\ Prefix(s, n) = Prefix(t, n)
                                                       /\ (n < Min(Len(s), Len(t)) => s[n + 1] # t[n + 1])

Init ==
    /\ members \in [Txs -> (SUBSET Parts) \ {{}}]
    /\ jlog = [e \in 1..MaxJ |-> <<>>] /\ jep = 1 /\ jdur = 0
    /\ promised = {} /\ broken = {}
    /\ plog = [p \in Parts |-> <<>>] /\ pdur = [p \in Parts |-> 0] /\ fails = 0
    /\ answered = [e \in 1..MaxJ |-> {}] /\ msgs = {}

--------------------------------------------------------------------------
(* Decisions. *)

Decision(k, t) == [k |-> k, t |-> t]
Committed(ce) == {x.t : x \in {y \in Range(jlog[ce]) : y.k = "commit"}}
Aborted(ce) == {x.t : x \in {y \in Range(jlog[ce]) : y.k = "abort"}}
At(ce, k, t) == CHOOSE i \in 1..Len(jlog[ce]) : jlog[ce][i] = Decision(k, t)
IsDurable(ce, i) == FinalIsDurable => (i <= jdur /\ i <= Common(jlog[ce], jlog[jep]))

\* The group's transactions are prepared in any order: J's order is the order of the group.
Prepare(ce, t) ==
        /\ t \notin Committed(ce)
        /\ jlog' = [jlog EXCEPT ![ce] = Append(@, Decision("commit", t))]
        /\ UNCHANGED <<members, jep, jdur, promised, broken, plog, pdur, fails, answered, msgs>>

Promise(t) == /\ t \notin promised \cup broken /\ promised' = promised \cup {t}
              /\ UNCHANGED <<members, jlog, jep, jdur, broken, plog, pdur, fails, answered, msgs>>

Break(t) == /\ t \notin promised \cup broken /\ broken' = broken \cup {t}
            /\ UNCHANGED <<members, jlog, jep, jdur, promised, plog, pdur, fails, answered, msgs>>

TakeBack(ce, t) ==
    /\ t \in (Committed(ce) \cap broken) \ Aborted(ce)
    /\ jlog' = [jlog EXCEPT ![ce] = Append(@, Decision("abort", t))]
    /\ UNCHANGED <<members, jep, jdur, promised, broken, plog, pdur, fails, answered, msgs>>

WillBeApplied(ce, t) == t \in Committed(ce) \cap promised /\ IsDurable(ce, At(ce, "commit", t))
IsOver(ce, t) == t \in Aborted(ce) /\ IsDurable(ce, At(ce, "abort", t))
IsFinal(ce, t) == WillBeApplied(ce, t) \/ IsOver(ce, t)

--------------------------------------------------------------------------
(* APPLY. *)

Earlier(ce, t) == {u \in Committed(ce) : At(ce, "commit", u) < At(ce, "commit", t)}

\* What comes before t in p, and is not known to be applied there; 0 if there is none.
Predecessor(ce, t, p) ==
    LET before == {u \in Earlier(ce, t) \ (IF SkipsAborted THEN Aborted(ce) ELSE {}) :
                       p \in members[u] /\ <<u, p>> \notin answered[ce]}
    IN  IF before = {} THEN 0 ELSE CHOOSE u \in before : before \ {u} \subseteq Earlier(ce, u)

SendApply(ce, t, p) ==
    /\ WillBeApplied(ce, t) /\ p \in members[t] /\ <<t, p>> \notin answered[ce]
    /\ WaitsForEarlier => \A u \in Earlier(ce, t) : IsFinal(ce, u)
    /\ msgs' = msgs \cup {[t |-> t, p |-> p, after |-> Predecessor(ce, t, p)]}
    /\ msgs' # msgs
    /\ UNCHANGED <<members, jlog, jep, jdur, promised, broken, plog, pdur, fails, answered>>

\* A message may come at any time, again, and after later ones.
GetApply(m) ==
    /\ m.t \notin Range(plog[m.p])
    /\ NamesPredecessor => (m.after = 0 \/ m.after \in Range(plog[m.p]))
    /\ plog' = [plog EXCEPT ![m.p] = Append(@, m.t)]
    /\ UNCHANGED <<members, jlog, jep, jdur, promised, broken, pdur, fails, answered, msgs>>

\* The answer says that it is applied.
Answer(ce, t, p) ==
    /\ <<t, p>> \notin answered[ce] /\ t \in Committed(ce)
    /\ t \in (IF EndsWhenDurable THEN Range(Prefix(plog[p], pdur[p])) ELSE Range(plog[p]))
    /\ answered' = [answered EXCEPT ![ce] = @ \cup {<<t, p>>}]
    /\ UNCHANGED <<members, jlog, jep, jdur, promised, broken, plog, pdur, fails, msgs>>

--------------------------------------------------------------------------
(* Journals. *)

Sync == /\ jdur < Len(jlog[jep]) /\ jdur' = Len(jlog[jep])
        /\ UNCHANGED <<members, jlog, jep, promised, broken, plog, pdur, fails, answered, msgs>>

SyncPart(p) == /\ pdur[p] < Len(plog[p]) /\ pdur' = [pdur EXCEPT ![p] = Len(plog[p])]
               /\ UNCHANGED <<members, jlog, jep, jdur, promised, broken, plog, fails, answered, msgs>>

\* The former coordinator goes on, and does not know.
FailJ == /\ jep < MaxJ /\ jep' = jep + 1
         /\ \E n \in jdur..Len(jlog[jep]) : jlog' = [jlog EXCEPT ![jep + 1] = Prefix(jlog[jep], n)] /\ jdur' = n
         /\ UNCHANGED <<members, promised, broken, plog, pdur, fails, answered, msgs>>

FailPart(p) == /\ fails < MaxP /\ fails' = fails + 1
               /\ \E n \in pdur[p]..Len(plog[p]) : plog' = [plog EXCEPT ![p] = Prefix(@, n)]
               /\ UNCHANGED <<members, jlog, jep, jdur, promised, broken, pdur, answered, msgs>>

Next ==
    \/ \E ce \in Coordinators : \E t \in Txs :
                                    \/ Prepare(ce, t) \/ TakeBack(ce, t)
                                    \/ \E p \in Parts : SendApply(ce, t, p) \/ Answer(ce, t, p)
    \/ \E t \in Txs : Promise(t) \/ Break(t)
    \/ \E m \in msgs : GetApply(m)
    \/ \E p \in Parts : SyncPart(p) \/ FailPart(p)
    \/ Sync \/ FailJ

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------
(* What must hold. *)

Place(p, t) == CHOOSE i \in 1..Len(plog[p]) : plog[p][i] = t
Shows(p, t) == t \in Range(Prefix(plog[p], pdur[p]))

\* Two transactions have one order in all participants that show both (P5).
OneOrder == \A p, q \in Parts : \A t, u \in Txs :
    (Shows(p, t) /\ Shows(p, u) /\ Shows(q, t) /\ Shows(q, u)) => (Place(p, t) < Place(p, u)) = (Place(q, t) < Place(q, u))

\* What has to be applied can be, as long as somebody can do something: nothing waits for ever for what was taken back.
CanGoOn == \/ ENABLED Sync
           \/ \E u \in Txs : \/ ENABLED Prepare(jep, u) \/ ENABLED Promise(u) \/ ENABLED TakeBack(jep, u)
                            \/ \E p \in Parts : ENABLED SendApply(jep, u, p) \/ ENABLED Answer(jep, u, p)
           \/ \E m \in msgs : ENABLED GetApply(m)
           \/ \E p \in Parts : ENABLED SyncPart(p)
NeverStuck == CanGoOn \/ \A t \in Txs : \A p \in members[t] : WillBeApplied(jep, t) => Shows(p, t)

Symmetry == Permutations(Parts)
=============================================================================
