package orphans

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/console"
)

// outputItem is an orphan in JSON and YAML output.
type outputItem struct {
	Cluster    string    `json:"cluster"`
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Created    time.Time `json:"created"`
	LastWork   string    `json:"lastWork"`
	WantedBy   string    `json:"wantedBy,omitempty"`
	Result     string    `json:"result,omitempty"`
}

// describe returns the kind, namespace and name of the orphan.
func (one *orphan) describe() string {
	name := one.object.GetName()
	if namespace := one.object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return one.object.GetKind() + " " + name
}

func (one *orphan) lastWork() string {
	annotations := one.object.GetAnnotations()
	return annotations[workv1alpha1.WorkNamespaceAnnotation] + "/" + annotations[workv1alpha1.WorkNameAnnotation]
}

// print prints the orphans of all clusters. If an action is selected, it prints only the orphans
// to which the action applies.
func (o *options) print(results []clusterOrphans, now time.Time) error {
	action := o.selectedAction()
	table := console.Output{
		Header: []string{"CLUSTER", "KIND", "NAMESPACE", "NAME", "AGE", "LAST-WORK", "WANTED-BY"}, ColumnGap: 3,
	}
	if action != nil {
		table.Header = append(table.Header, "RESULT")
	}
	objects, skipped := []outputItem{}, 0
	for _, a := range results {
		if a.awaitedCount > 0 {
			o.Program.Messagef("cluster(%s): %d objects have no Work yet, but a binding expects them in the cluster: they are not orphans", a.cluster, a.awaitedCount)
		}
		if a.omittedCount > 0 {
			o.Program.Messagef("cluster(%s): %d more orphans are not shown; --limit sets the maximum", a.cluster, a.omittedCount)
		}
		for i := range a.orphans {
			one := &a.orphans[i]
			if o.remove && !one.isWanted && one.containsOtherObjects() {
				o.Program.Messagef("cluster(%s): %s is not deleted, because other objects would be deleted with it; --release removes the labels of Karmada from it", a.cluster, one.describe())
				skipped++
			}
			if action != nil && !action.appliesTo(one) {
				continue
			}
			objects = append(objects, one.newOutputItem(a.cluster, action))
			table.Rows = append(table.Rows, objects[len(objects)-1].row(now, action != nil))
			table.Names = append(table.Names, fmt.Sprintf("%s/%s", one.resource.GroupResource(), one.object.GetName()))
		}
	}
	table.Object = map[string]any{"items": objects}
	if len(objects) == 0 && skipped > 0 && o.format.IsTable() {
		return nil
	}
	if len(objects) == 0 && o.format.IsTable() {
		o.Program.Messagef("No orphans found")
		return nil
	}
	return o.format.Print(o.Program.Out, table)
}

func (one *orphan) newOutputItem(cluster string, action *action) outputItem {
	result := one.result
	if action != nil && result == "" {
		result = "would be " + action.doneText
	}
	return outputItem{
		Cluster: cluster, APIVersion: one.object.GetAPIVersion(), Kind: one.object.GetKind(),
		Namespace: one.object.GetNamespace(), Name: one.object.GetName(), UID: string(one.object.GetUID()),
		Created: one.object.GetCreationTimestamp().Time, LastWork: one.lastWork(), WantedBy: one.claim.WorkName, Result: result,
	}
}

func (o outputItem) row(now time.Time, hasResult bool) []string {
	cells := []string{o.Cluster, o.Kind, console.OrNone(o.Namespace), o.Name, duration.HumanDuration(now.Sub(o.Created)), o.LastWork, console.OrNone(o.WantedBy)}
	if hasResult {
		cells = append(cells, o.Result)
	}
	return cells
}
