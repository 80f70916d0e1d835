package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/printers"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// table is a header and rows of cells.
type table struct {
	header []string
	rows   [][]string
}

// printTable writes a table in columns, nothing at all if it has no rows.
func printTable(out io.Writer, noHeaders bool, shown table) error {
	if len(shown.rows) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(out)
	if !noHeaders {
		fmt.Fprintln(w, strings.Join(shown.header, "\t"))
	}
	for _, row := range shown.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// cores and bytes are shown in the units of kubectl.
func cores(usage corev1.ResourceList) string { return fmt.Sprintf("%dm", usage.Cpu().MilliValue()) }

func bytes(usage corev1.ResourceList) string {
	return fmt.Sprintf("%dMi", usage.Memory().Value()/(1024*1024))
}

// most orders what uses more before what uses less, in the way of --sort-by.
func most(sortBy string, a, b corev1.ResourceList) int {
	switch sortBy {
	case byCPU:
		return b.Cpu().Cmp(*a.Cpu())
	case byMemory:
		return b.Memory().Cmp(*a.Memory())
	}
	return 0
}

const unknown = "<unknown>"

func nodeTable(nodes []nodeUse, sortBy string) table {
	slices.SortStableFunc(nodes, func(a, b nodeUse) int {
		return cmp.Or(most(sortBy, a.usage, b.usage), cmp.Compare(a.name, b.name), cmp.Compare(a.cluster, b.cluster))
	})
	shown := table{header: []string{"NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"}}
	for _, node := range nodes {
		row := []string{node.name, node.cluster, unknown, unknown, unknown, unknown}
		if node.usage != nil {
			row = []string{
				node.name, node.cluster,
				cores(node.usage), share(*node.usage.Cpu(), *node.available.Cpu()),
				bytes(node.usage), share(*node.usage.Memory(), *node.available.Memory()),
			}
		}
		shown.rows = append(shown.rows, row)
	}
	return shown
}

// share is how much of what there is is used, in percent.
func share(used, available resource.Quantity) string {
	if available.IsZero() {
		return unknown
	}
	return fmt.Sprintf("%d%%", int64(float64(used.MilliValue())/float64(available.MilliValue())*100))
}

// total is what all containers of a pod use.
func total(containers []metricsv1beta1.ContainerMetrics) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range containers {
		add(sum, containers[i].Usage)
	}
	return sum
}

func add(sum, usage corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		quantity := sum[name]
		quantity.Add(usage[name])
		sum[name] = quantity
	}
}

func (o *podOptions) podTable(pods []podUse) table {
	slices.SortStableFunc(pods, func(a, b podUse) int {
		return cmp.Or(
			most(o.sortBy, total(a.metrics.Containers), total(b.metrics.Containers)),
			cmp.Compare(a.metrics.Namespace, b.metrics.Namespace), cmp.Compare(a.metrics.Name, b.metrics.Name), cmp.Compare(a.cluster, b.cluster),
		)
	})
	// Columns that are there on demand come before the name.
	var before []string
	if o.allNamespaces {
		before = append(before, "NAMESPACE")
	}
	if o.containers {
		before = append(before, "POD")
	}
	shown := table{header: append(slices.Clone(before), "NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)")}
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		add(sum, total(pod.metrics.Containers))
		shown.rows = append(shown.rows, o.podRows(pod)...)
	}
	if o.sum && len(pods) > 0 {
		blank := slices.Repeat([]string{""}, len(before)+2)
		shown.rows = append(shown.rows, slices.Concat(blank, []string{"________", "________"}), slices.Concat(blank, []string{cores(sum), bytes(sum)}))
	}
	return shown
}

// podRows is one row for a pod, or one for each of its containers.
func (o *podOptions) podRows(pod podUse) [][]string {
	var before []string
	if o.allNamespaces {
		before = append(before, pod.metrics.Namespace)
	}
	if !o.containers {
		usage := total(pod.metrics.Containers)
		return [][]string{append(before, pod.metrics.Name, pod.cluster, cores(usage), bytes(usage))}
	}
	containers := slices.Clone(pod.metrics.Containers)
	slices.SortStableFunc(containers, func(a, b metricsv1beta1.ContainerMetrics) int {
		return cmp.Or(most(o.sortBy, a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
	})
	var rows [][]string
	for i := range containers {
		rows = append(rows, append(slices.Clone(before), pod.metrics.Name, containers[i].Name, pod.cluster, cores(containers[i].Usage), bytes(containers[i].Usage)))
	}
	return rows
}
