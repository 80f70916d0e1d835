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
	// MaxStatusBytes is the maximum size of the reflected status of one object, in bytes, if the
	// feature gate LargeStatus is disabled.
	MaxStatusBytes = 16 << 10
	// MaxAggregationBytes is the maximum total size of the statuses and messages of all of a binding's
	// clusters, in bytes. etcd accepts objects up to 1.5 MiB.
	MaxAggregationBytes = 1 << 20
	// maxStatusDepth is the maximum nesting depth of the JSON of a status.
	maxStatusDepth = 64
	// maxListedFields is the maximum number of omitted fields that a message lists.
	maxListedFields = 8
)

// OmittedStatus describes the fields that were omitted from a status.
type OmittedStatus struct {
	// Bytes is the size of the whole status. Limit is the limit for the reflected part. Both are in
	// bytes.
	Bytes, Limit int
	// Fields are the names of the omitted fields, sorted.
	Fields []string
}

// TruncateStatus returns a status that is small enough to be reflected. It also returns the omitted
// fields, or nil if none were omitted. It keeps the smallest fields, because these are usually counts
// and phases.
//
// limit is in bytes. The value 0 selects MaxStatusBytes.
func TruncateStatus(status *runtime.RawExtension, limit int) (*runtime.RawExtension, *OmittedStatus) {
	limit = cmp.Or(limit, MaxStatusBytes)
	if status == nil || len(status.Raw) <= limit && jsonDepth(status.Raw) <= maxStatusDepth {
		return status, nil
	}
	cut := &OmittedStatus{Bytes: len(status.Raw), Limit: limit}
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
		// JSON escapes can make a name up to six times as long.
		size += 6*len(name) + len(`"":,`) + len(fields[name])
		if size > limit || jsonDepth(fields[name]) >= maxStatusDepth {
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

// jsonDepth returns the maximum nesting depth of the given JSON text.
func jsonDepth(raw []byte) int {
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

// Describe returns the message that fields were omitted from an object's status.
func (o OmittedStatus) Describe(cluster string, of workv1alpha1.ResourceIdentifier) string {
	name := strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")
	what := "the status is left out"
	if len(o.Fields) > 0 {
		named := make([]string, 0, maxListedFields)
		for _, field := range o.Fields[:min(len(o.Fields), maxListedFields)] {
			named = append(named, conditions.Truncate(conditions.ToPrintable(field), 64))
		}
		what = "left out: " + strings.Join(named, ", ")
		if more := len(o.Fields) - len(named); more > 0 {
			what += fmt.Sprintf(" and %d more fields", more)
		}
	}
	return fmt.Sprintf("cluster %s: the status of %s %s has %d bytes and at most %d are reflected, nested at most %d deep; %s",
		cluster, of.Kind, name, o.Bytes, o.Limit, maxStatusDepth, what)
}

// StatusTruncatedCondition returns the condition that reports that the Work's statuses were truncated.
// The caller sets the transition time.
func StatusTruncatedCondition(work *workv1alpha1.Work, descriptions []string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkStatusTruncated, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkStatusTooLargeReason, Message: conditions.LimitMessage(strings.Join(descriptions, "; ")),
	}
}
