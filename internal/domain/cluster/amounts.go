package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are a list of resources, sorted by name and never changed. Most Pods of a
// cluster ask for one of a few of them.
type Amounts struct {
	entries []amount
	text    string
	refs    int
}

type amount struct {
	name     corev1.ResourceName
	quantity resource.Quantity
}

// pool holds every list once, by its text, as long as somebody refers to it.
type pool map[string]*Amounts

func (p pool) intern(list corev1.ResourceList) *Amounts {
	made := &Amounts{entries: make([]amount, 0, len(list))}
	for name, quantity := range list {
		made.entries = append(made.entries, amount{name: name, quantity: quantity.DeepCopy()})
	}
	slices.SortFunc(made.entries, func(a, b amount) int { return strings.Compare(string(a.name), string(b.name)) })
	var text strings.Builder
	for i := range made.entries {
		text.WriteString(string(made.entries[i].name))
		text.WriteByte('=')
		text.WriteString(made.entries[i].quantity.String())
		text.WriteByte(' ')
	}
	made.text = text.String()
	if known, ok := p[made.text]; ok {
		return known
	}
	p[made.text] = made
	return made
}

func (p pool) use(a *Amounts) {
	// It may have been let go since it was interned.
	p[a.text] = a
	a.refs++
}

func (p pool) release(a *Amounts) {
	if a.refs--; a.refs == 0 && p[a.text] == a {
		delete(p, a.text)
	}
}

// sweep drops what was interned and never used.
func (p pool) sweep() {
	for text, a := range p {
		if a.refs == 0 {
			delete(p, text)
		}
	}
}

// sums are totals of resources, and of how many things they are.
type sums struct {
	entries []total
	things  int64
}

// total is the sum of one resource over those who have it.
type total struct {
	amount
	holders int64
}

func (s *sums) add(a *Amounts) {
	s.things++
	for i := range a.entries {
		at := s.at(a.entries[i].name)
		s.entries[at].quantity.Add(a.entries[i].quantity)
		s.entries[at].holders++
	}
}

func (s *sums) subtract(a *Amounts) {
	s.things--
	for i := range a.entries {
		at := s.at(a.entries[i].name)
		s.entries[at].quantity.Sub(a.entries[i].quantity)
		if s.entries[at].holders--; s.entries[at].holders == 0 {
			s.entries = slices.Delete(s.entries, at, at+1)
		}
	}
}

func (s *sums) at(name corev1.ResourceName) int {
	for i := range s.entries {
		if s.entries[i].name == name {
			return i
		}
	}
	s.entries = append(s.entries, total{amount: amount{name: name}})
	return len(s.entries) - 1
}

// of is the sum of one resource, 0 if nobody has it.
func (s *sums) of(name corev1.ResourceName) resource.Quantity {
	for i := range s.entries {
		if s.entries[i].name == name {
			return s.entries[i].quantity
		}
	}
	return resource.Quantity{}
}

// list is the sums as a status shows them. counted says that each thing takes one
// Pod, too.
func (s *sums) list(counted bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range s.entries {
		list[s.entries[i].name] = s.entries[i].quantity.DeepCopy()
	}
	if counted && s.things > 0 {
		pods := list[corev1.ResourcePods]
		pods.Add(*resource.NewQuantity(s.things, resource.DecimalSI))
		list[corev1.ResourcePods] = pods
	}
	return list
}
