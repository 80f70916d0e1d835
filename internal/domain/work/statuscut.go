package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// MaxStatusBytes is how large the reflected status of one object may be, in bytes,
	// without the feature gate LargeStatus.
	MaxStatusBytes = 16 << 10
	// MaxAccountBytes is how large the statuses and messages of all clusters of a binding
	// may be together, in bytes. etcd takes objects of 1.5 MiB.
	MaxAccountBytes = 1 << 20
	// maxStatusDepth is how deep JSON in a status may be nested.
	maxStatusDepth = 64
	// maxFieldsNamed is how many fields that were left out are named.
	maxFieldsNamed = 8
)

// StatusCut is what was left out of a status.
type StatusCut struct {
	// Bytes is the size of the whole status, Limit what of it is reflected at most.
	Bytes, Limit int
	// Fields are the names of the fields that were left out, in order.
	Fields []string
}

// CutStatus returns a status that is small enough to be reflected, and what was left
// out of it; nil for nothing. The smallest fields stay, which are counts and phases.
//
// The limit is in bytes; 0 means MaxStatusBytes.
func CutStatus(status *runtime.RawExtension, limit int) (*runtime.RawExtension, *StatusCut) {
	limit = cmp.Or(limit, MaxStatusBytes)
	if status == nil || len(status.Raw) <= limit && depthOf(status.Raw) <= maxStatusDepth {
		return status, nil
	}
	cut := &StatusCut{Bytes: len(status.Raw), Limit: limit}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(status.Raw, &fields); err != nil {
		return nil, cut
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a)+len(fields[a]), len(b)+len(fields[b])), strings.Compare(a, b))
	})
	kept, size := map[string]json.RawMessage{}, len("{}")
	for _, name := range names {
		// A quoted name may be six times as long as the name.
		size += 6*len(name) + len(`"":,`) + len(fields[name])
		if size > limit || depthOf(fields[name]) >= maxStatusDepth {
			cut.Fields = append(cut.Fields, name)
			continue
		}
		kept[name] = fields[name]
	}
	slices.Sort(cut.Fields)
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil, cut
	}
	return &runtime.RawExtension{Raw: raw}, cut
}

// depthOf is how deep JSON is nested.
func depthOf(raw []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

// Describe says what was left out of the status of an object.
func (c StatusCut) Describe(cluster string, of workv1alpha1.ResourceIdentifier) string {
	name := strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")
	what := "the status is left out"
	if len(c.Fields) > 0 {
		named := make([]string, 0, maxFieldsNamed)
		for _, field := range c.Fields[:min(len(c.Fields), maxFieldsNamed)] {
			named = append(named, conditions.Shorten(conditions.Printable(field), 64))
		}
		what = "left out: " + strings.Join(named, ", ")
		if more := len(c.Fields) - len(named); more > 0 {
			what += fmt.Sprintf(" and %d more fields", more)
		}
	}
	return fmt.Sprintf("cluster %s: the status of %s %s has %d bytes and at most %d are reflected, nested at most %d deep; %s",
		cluster, of.Kind, name, c.Bytes, c.Limit, maxStatusDepth, what)
}

// StatusCutCondition is the condition that statuses of a Work were cut. The time of a
// transition is left to the caller.
func StatusCutCondition(of *workv1alpha1.Work, descriptions []string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkStatusCut, Status: metav1.ConditionTrue, ObservedGeneration: of.Generation,
		Reason: workv1alpha1.WorkStatusTooLargeReason, Message: conditions.Clip(strings.Join(descriptions, "; ")),
	}
}
