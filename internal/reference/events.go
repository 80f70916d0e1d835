package reference

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/controllers/agentcsrapproving"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/workdeletion"
)

// eventPrefix is the prefix of the names of those constants of api that are event reasons.
const eventPrefix = "EventReason"

// eventComment matches the comment of an event reason.
var eventComment = regexp.MustCompile(`^\w+, of type (Normal|Warning|Normal or Warning), on (.+?): (.+)$`)

// event is a row of the page of events.
type event struct {
	reason, kind, objects, meaning string
	// components are the event sources that record the event.
	components []string
}

// conditionEvents describes the events that are recorded when a condition changes. Their reasons, and
// the meanings of these reasons, are in the table of conditions.
type conditionEvents struct {
	conditionType, object, component, kind string
	// reasonPrefix is the prefix that the reason of the event has before the reason of the
	// condition.
	reasonPrefix string
}

// eventsOfConditions returns the conditions whose changes are recorded as events with the same
// reason.
func eventsOfConditions() []conditionEvents {
	const cluster, warningOrNormal = "the Cluster", "Warning if the condition reports a problem, Normal when the problem ends"
	status := clusterstatus.Name
	return []conditionEvents{
		{conditionType: clusterv1alpha1.ClusterConditionReady, object: cluster, component: status + ", " + clustermonitor.Name,
			kind: warningOrNormal},
		{conditionType: clusterv1alpha1.ClusterConditionCredentialsValid, object: cluster, component: status, kind: warningOrNormal,
			reasonPrefix: "Credentials"},
		{conditionType: clusterv1alpha1.ClusterConditionIdentityMismatch, object: cluster, component: status, kind: warningOrNormal},
		{conditionType: clusterv1alpha1.ClusterConditionWithinBounds, object: cluster, component: status, kind: warningOrNormal},
		{conditionType: workv1alpha1.WorkDeletionHeld, object: "the Cluster, if the deletion is part of a mass deletion or of a restore",
			component: workdeletion.Name, kind: "Warning"},
		{conditionType: clusterv1alpha1.AgentNotApproved, object: "the CertificateSigningRequest", component: agentcsrapproving.Name,
			kind: "Warning"},
	}
}

// recorders returns the event sources of the packages that do not declare the constant Name, by the
// name of the package.
func recorders() map[string]string {
	return map[string]string{"scheduler": policyv1alpha1.DefaultSchedulerName, "deletionguard": workdeletion.Name}
}

var errEventComment = errors.New("the comment must have the form \"NAME, of type Normal, on OBJECT: meaning.\"")

// events returns the events of api. recorded contains the events that this version records, and
// reserved contains the reasons that it does not record.
func events(s *source) (recorded []event, reserved []string, err error) {
	for i := range s.constants {
		c := &s.constants[i]
		if !strings.HasPrefix(c.name, eventPrefix) {
			continue
		}
		if c.comment == "" {
			reserved = append(reserved, c.value)
			continue
		}
		parts := eventComment.FindStringSubmatch(c.comment)
		if parts == nil {
			return nil, nil, fmt.Errorf("%s: %w", c.key(), errEventComment)
		}
		recorded = append(recorded, event{reason: c.value, kind: parts[1], objects: parts[2], meaning: parts[3], components: recordersOf(s, c)})
	}
	slices.SortFunc(recorded, func(a, b event) int { return strings.Compare(a.reason, b.reason) })
	slices.Sort(reserved)
	return recorded, slices.Compact(reserved), nil
}

// recordersOf returns the event sources that record the event with the given reason constant.
func recordersOf(s *source, c *constant) []string {
	names := s.users(c)
	for i, name := range names {
		if recorder := recorders()[name]; recorder != "" {
			names[i] = recorder
		}
	}
	if len(names) == 0 { // recorded with the reason of a condition
		names = []string{workdeletion.Name}
	}
	return names
}

func eventsPage(s *source) (*markdown, error) {
	recorded, reserved, err := events(s)
	if err != nil {
		return nil, err
	}
	text := newMarkdown("Events", "This page lists the events that this version records. An event is recorded when its cause changes, and not at each reconcile. "+
		"[Status](../status.md#events) explains how to use events.")
	var rows [][]string
	for _, e := range recorded {
		rows = append(rows, []string{code(e.reason), e.kind, cell(e.objects), cell(strings.Join(e.components, ", ")), cell(sentence(e.meaning))})
	}
	text.addTable([]string{"reason", "type", "object", "reported by", "meaning"}, rows)

	text.addSection("Events of conditions", "When one of these conditions changes, an event is recorded too. The reason of the event is the reason of the [condition](conditions.md), after the given prefix if there is one.")
	rows = nil
	for _, e := range eventsOfConditions() {
		rows = append(rows, []string{code(e.conditionType), code(e.reasonPrefix), cell(e.kind), cell(e.object), cell(e.component)})
	}
	text.addTable([]string{"condition", "prefix of the reason", "type", "object", "reported by"}, rows)
	if len(reserved) > 0 {
		text.addSection("Reserved reasons", "This version records no event with these reasons: `"+strings.Join(reserved, "`, `")+"`.")
	}
	return text, nil
}
