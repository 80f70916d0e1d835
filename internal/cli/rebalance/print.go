package rebalance

import (
	"fmt"
	"strings"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/rebalance"
)

// document is the result in JSON and YAML.
type document struct {
	WorkloadRebalancer string            `json:"workloadRebalancer,omitempty"`
	Workloads          []workloadOutcome `json:"workloads"`
}

type workloadOutcome struct {
	rebalance.Workload `json:",inline"`
	Before             string `json:"before"`
	After              string `json:"after,omitempty"`
	Result             string `json:"result"`
	Message            string `json:"message,omitempty"`
}

func (o *options) print(name string, rows []*row) error {
	table := console.Output{Header: []string{"NAMESPACE", "WORKLOAD", "BEFORE", "AFTER", "RESULT"}, ColumnGap: 3}
	result := document{WorkloadRebalancer: name}
	for _, each := range rows {
		outcome := workloadOutcome{
			Workload: each.workload, Before: describeClusters(each.before), After: describeClusters(each.after),
			Result: each.result(), Message: each.message,
		}
		result.Workloads = append(result.Workloads, outcome)
		text := strings.ToLower(each.workload.Kind) + "/" + each.workload.Name
		shown := outcome.Result
		if outcome.Message != "" {
			shown += ": " + outcome.Message
		}
		table.Names = append(table.Names, text)
		table.Rows = append(table.Rows, []string{console.OrNone(each.workload.Namespace), text, console.OrNone(outcome.Before),
			console.OrNone(outcome.After), shown})
	}
	table.Object = result
	return o.format.Print(o.Program.Out, table)
}

// describeClusters returns the clusters with their replicas, or an empty text for an unknown state.
func describeClusters(bound binding.Object) string {
	if bound == nil {
		return ""
	}
	return placement.DescribeTargets(bound.BindingSpec())
}

// result describes the outcome for a workload in one or two words.
func (r *row) result() string {
	switch r.progress {
	case rebalance.Placed:
		if rebalance.HaveSameTargets(r.before, r.after) {
			return "unchanged"
		}
		return "moved"
	case rebalance.NotPlaced:
		return "not placed"
	case rebalance.Skipped:
		return "skipped"
	default:
		return "waiting"
	}
}

// resultError returns an error that counts the workloads that are not placed, or nil. Without a wait, no workload
// is placed yet.
func (o *options) resultError(rows []*row) error {
	notPlaced, waiting := 0, 0
	for _, each := range rows {
		switch each.progress {
		case rebalance.NotPlaced:
			notPlaced++
		case rebalance.Waiting:
			waiting++
		}
	}
	switch {
	case notPlaced > 0:
		return &command.ResultError{Code: command.ExitFailure, Reason: fmt.Errorf("%s cannot be placed; \"%s trace\" explains why",
			count(notPlaced), o.Program.Name)}
	case waiting > 0 && o.wait:
		return &command.ResultError{Code: command.ExitFailure,
			Reason: fmt.Errorf("the scheduler has not placed %s within %s", count(waiting), o.timeout)}
	default:
		return nil
	}
}
