package execution

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestLedgerKnowsTheVeryWorkThatWasLetGo(t *testing.T) {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
	again := of.DeepCopy()
	again.UID = "2"
	l := newLedger()
	l.release(of, noon)
	if !l.isReleased(of, noon) {
		t.Error("a Work that was let go is not known")
	}
	if l.isReleased(again, noon) {
		t.Error("a new Work of the same name is taken for the one that was let go")
	}
	if l.isReleased(of, noon.Add(releasedFor)) {
		t.Error("a Work that a restore brought back waits forever")
	}
	l.forget(nameOf(of))
	if l.isReleased(of, noon) {
		t.Error("a Work that is gone is still remembered")
	}
}

func TestLedgerTellsRepairsFromChanges(t *testing.T) {
	l, key := newLedger(), objectKey{}
	none := func(map[string]any) {}
	first, next := object(none), object(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} })
	if repair, _ := l.repair(key, first, noon); repair {
		t.Error("the first write is taken for a repair")
	}
	l.repaired(key, noon, "nobody")
	if told, again := l.contested(key, noon); told != "" || again != 0 {
		t.Error("an object that was never applied is contested")
	}
	l.remember(key, first, first)
	if repair, _ := l.repair(key, next, noon); repair {
		t.Error("a change of the manifest is taken for a repair")
	}
	now := noon
	for range 5 {
		repair, wait := l.repair(key, first, now)
		if !repair || wait != 0 {
			t.Fatalf("repair %v after %v", repair, wait)
		}
		l.remember(key, first, first)
		l.repaired(key, now, "tuner")
		now = now.Add(time.Millisecond)
	}
	if _, wait := l.repair(key, first, now); wait == 0 {
		t.Error("a fight does not become slower")
	}
	if told, again := l.contested(key, now); told != "tuner" || again == 0 {
		t.Errorf("told %q, again after %v", told, again)
	}
	if _, wait := l.repair(key, next, now); wait != 0 {
		t.Error("a change of the manifest waits for a fight to end")
	}
	if told, again := l.contested(key, now.Add(time.Minute)); again != 0 {
		t.Errorf("a fight that is over is told of: %q, %v", told, again)
	}
}

func TestLedgerKnowsWhatItMade(t *testing.T) {
	l, key := newLedger(), objectKey{}
	made := object(func(c map[string]any) { metadata(c)["resourceVersion"] = "7" })
	if l.differs(key, "7") {
		t.Error("an object that was never applied differs")
	}
	l.remember(key, made, made)
	if l.differs(key, "7") || !l.differs(key, "8") {
		t.Error("its own version is taken for another, or another for its own")
	}
}

func TestLedgerTellsNewsOnce(t *testing.T) {
	l := newLedger()
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
	if !l.news(of, "False") || l.news(of, "False") || !l.news(of, "True") {
		t.Error("news are told twice, or not at all")
	}
	l.forget(nameOf(of))
	if !l.news(of, "True") {
		t.Error("what was told of an earlier Work counts")
	}
}

func TestLedgerKnowsWhichManifestTheMemberTook(t *testing.T) {
	l, key := newLedger(), objectKey{}
	first, next := object(func(map[string]any) {}), object(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} })
	if l.took(key, first) {
		t.Error("a manifest that was never applied was taken")
	}
	l.remember(key, first, next)
	if !l.took(key, first) || l.took(key, next) {
		t.Error("what was applied is not told from what was not")
	}
}
