package interpreters

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/interpreter"
)

// Table is a source of rules that are set at runtime. The zero value has no rules.
type Table struct {
	Announcer
	mu    sync.RWMutex
	rules map[schema.GroupVersionKind]interpreter.Rules
}

// Rules implements interpreter.Source.
func (t *Table) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rules[kind]
}

// Set replaces the rules of a kind and announces the change. It always announces, because rules are
// functions and cannot be compared. Callers must call it only if the rules differ.
func (t *Table) Set(kind schema.GroupVersionKind, rules interpreter.Rules) {
	t.mu.Lock()
	if t.rules == nil {
		t.rules = map[schema.GroupVersionKind]interpreter.Rules{}
	}
	t.rules[kind] = rules
	t.mu.Unlock()
	t.Announce(interpreter.KindsOf(kind))
}

// Delete removes the rules of a kind and announces the change. If the kind has no rules, it does
// nothing.
func (t *Table) Delete(kind schema.GroupVersionKind) {
	t.mu.Lock()
	_, existed := t.rules[kind]
	delete(t.rules, kind)
	t.mu.Unlock()
	if existed {
		t.Announce(interpreter.KindsOf(kind))
	}
}
