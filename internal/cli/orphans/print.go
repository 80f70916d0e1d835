package orphans

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/console"
)

// shown is an orphan as JSON and YAML print it.
type shown struct {
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

// title names an orphan within its cluster.
func (one *orphan) title() string {
	name := one.object.GetName()
	if space := one.object.GetNamespace(); space != "" {
		name = space + "/" + name
	}
	return one.object.GetKind() + " " + name
}

func (one *orphan) lastWork() string {
	annotations := one.object.GetAnnotations()
	return annotations[workv1alpha1.WorkNamespaceAnnotation] + "/" + annotations[workv1alpha1.WorkNameAnnotation]
}

// print prints the orphans of all clusters, or those that an action is for.
func (o *options) print(answers []answer, now time.Time) error {
	action := o.action()
	table := console.Output{
		Header: []string{"CLUSTER", "KIND", "NAMESPACE", "NAME", "AGE", "LAST-WORK", "WANTED-BY"}, Gap: 3,
	}
	if action != nil {
		table.Header = append(table.Header, "RESULT")
	}
	objects, skipped := []shown{}, 0
	for _, a := range answers {
		if a.awaited > 0 {
			o.Program.Tell("cluster(%s): %d objects have no Work yet, but a binding expects them in the cluster: they are no orphans", a.cluster, a.awaited)
		}
		if a.more > 0 {
			o.Program.Tell("cluster(%s): %d more orphans are not shown; --limit sets how many are", a.cluster, a.more)
		}
		for i := range a.orphans {
			one := &a.orphans[i]
			if o.remove && !one.wanted && one.containsOthers() {
				o.Program.Tell("cluster(%s): %s is not deleted, because objects of others would be deleted with it; --release takes the marks of Karmada off it", a.cluster, one.title())
				skipped++
			}
			if action != nil && !action.fits(one) {
				continue
			}
			objects = append(objects, one.shown(a.cluster, action))
			table.Rows = append(table.Rows, objects[len(objects)-1].row(now, action != nil))
			table.Names = append(table.Names, fmt.Sprintf("%s/%s", one.resource.GroupResource(), one.object.GetName()))
		}
	}
	table.Object = map[string]any{"items": objects}
	if len(objects) == 0 && skipped > 0 && o.format.Table() {
		return nil
	}
	if len(objects) == 0 && o.format.Table() {
		o.Program.Tell("No orphans found")
		return nil
	}
	return o.format.Print(o.Program.Out, table)
}

func (one *orphan) shown(cluster string, action *action) shown {
	result := one.result
	if action != nil && result == "" {
		result = "would be " + action.done
	}
	return shown{
		Cluster: cluster, APIVersion: one.object.GetAPIVersion(), Kind: one.object.GetKind(),
		Namespace: one.object.GetNamespace(), Name: one.object.GetName(), UID: string(one.object.GetUID()),
		Created: one.object.GetCreationTimestamp().Time, LastWork: one.lastWork(), WantedBy: one.claim.Work, Result: result,
	}
}

func (s shown) row(now time.Time, treated bool) []string {
	cells := []string{s.Cluster, s.Kind, orNone(s.Namespace), s.Name, duration.HumanDuration(now.Sub(s.Created)), s.LastWork, orNone(s.WantedBy)}
	if treated {
		cells = append(cells, s.Result)
	}
	return cells
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
