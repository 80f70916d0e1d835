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

// sums are totals of resources, and of how many things they are.
type sums struct {
	// entries are sorted by name.
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

// at is where the sum of one resource is, which is made if there is none.
func (s *sums) at(name corev1.ResourceName) int {
	at, found := s.find(name)
	if !found {
		s.entries = slices.Insert(s.entries, at, total{amount: amount{name: name}})
	}
	return at
}

func (s *sums) find(name corev1.ResourceName) (at int, found bool) {
	return slices.BinarySearchFunc(s.entries, name, func(one total, name corev1.ResourceName) int {
		return strings.Compare(string(one.name), string(name))
	})
}

// of is the sum of one resource, 0 if nobody has it.
func (s *sums) of(name corev1.ResourceName) resource.Quantity {
	if at, found := s.find(name); found {
		return s.entries[at].quantity
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
