package aggregated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const noneText = "<none>"

// tableConvertor converts Clusters to the tables that kubectl prints.
type tableConvertor struct {
	now func() metav1.Time
}

// tableColumns returns the columns of a table. tableConvertor.row returns cells in the same order.
func tableColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the member cluster."},
		{Name: "Version", Type: "string", Description: "Kubernetes version of the member's API server."},
		{Name: "Mode", Type: "string", Description: "Push: the control plane reaches the member; Pull: an agent in the member reaches the control plane."},
		{Name: "Ready", Type: "string", Description: "Whether the member is reachable and healthy."},
		{Name: "Age", Type: "string", Description: "Time since the member was registered."},
		{Name: "Zones", Type: "string", Priority: 1, Description: "Zones in which the member has nodes."},
		{Name: "Region", Type: "string", Priority: 1, Description: "Region of the member."},
		{Name: "Provider", Type: "string", Priority: 1, Description: "Provider of the member."},
		{Name: "API-Endpoint", Type: "string", Priority: 1, Description: "URL of the member's API server."},
		{Name: "Proxy-URL", Type: "string", Priority: 1, Description: "Proxy through which the member is reached."},
		{Name: "Taints", Type: "string", Priority: 1, Description: "Taints of the member, as key=value:Effect."},
	}
}

// ConvertToTable returns a row for each Cluster of an object or list.
func (t tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	switch o := object.(type) {
	case *clusterv1alpha1.Cluster:
		table.ResourceVersion = o.ResourceVersion
		table.Rows = []metav1.TableRow{t.row(o)}
	case *clusterv1alpha1.ClusterList:
		table.ListMeta = o.ListMeta
		table.Rows = make([]metav1.TableRow, len(o.Items))
		for i := range o.Items {
			table.Rows[i] = t.row(&o.Items[i])
		}
	default:
		return nil, fmt.Errorf("printing clusters: got a %T", object)
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = tableColumns()
	}
	return table, nil
}

func (t tableConvertor) row(cluster *clusterv1alpha1.Cluster) metav1.TableRow {
	return metav1.TableRow{
		Cells: []any{
			cluster.Name,
			cluster.Status.KubernetesVersion,
			string(cluster.Spec.SyncMode),
			readyStatus(cluster),
			t.age(cluster),
			orNone(strings.Join(cluster.Spec.Zones, ",")),
			orNone(cluster.Spec.Region),
			orNone(cluster.Spec.Provider),
			cluster.Spec.APIEndpoint,
			orNone(cluster.Spec.ProxyURL),
			orNone(formatTaints(cluster.Spec.Taints)),
		},
		Object: runtime.RawExtension{Object: cluster},
	}
}

// formatTaints sorts the taints, so that the output does not depend on the order in which
// controllers add them.
func formatTaints(all []corev1.Taint) string {
	texts := make([]string, 0, len(all))
	for i := range all {
		texts = append(texts, all[i].ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

func readyStatus(cluster *clusterv1alpha1.Cluster) string {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady); condition != nil {
		return string(condition.Status)
	}
	return string(metav1.ConditionUnknown)
}

func (t tableConvertor) age(cluster *clusterv1alpha1.Cluster) string {
	if cluster.CreationTimestamp.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(t.now().Sub(cluster.CreationTimestamp.Time))
}

func orNone(value string) string {
	if value == "" {
		return noneText
	}
	return value
}
