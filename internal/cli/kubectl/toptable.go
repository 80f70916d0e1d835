package kubectl

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

// printTable prints a table in columns. It prints nothing if there are no rows.
func printTable(out io.Writer, noHeaders bool, result table) error {
	if len(result.rows) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(out)
	if !noHeaders {
		fmt.Fprintln(w, strings.Join(result.header, "\t"))
	}
	for _, row := range result.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// formatCores formats CPU usage in the unit of kubectl.
func formatCores(usage corev1.ResourceList) string {
	return fmt.Sprintf("%dm", usage.Cpu().MilliValue())
}

func formatBytes(usage corev1.ResourceList) string {
	return fmt.Sprintf("%dMi", usage.Memory().Value()/(1024*1024))
}

// compareUsage compares two usages by the resource that --sort-by names. The higher usage comes
// first.
func compareUsage(sortBy string, a, b corev1.ResourceList) int {
	switch sortBy {
	case sortByCPU:
		return b.Cpu().Cmp(*a.Cpu())
	case sortByMemory:
		return b.Memory().Cmp(*a.Memory())
	}
	return 0
}

const unknownCell = "<unknown>"

func newNodeTable(nodes []nodeUsage, sortBy string) table {
	slices.SortStableFunc(nodes, func(a, b nodeUsage) int {
		return cmp.Or(compareUsage(sortBy, a.usage, b.usage), cmp.Compare(a.name, b.name), cmp.Compare(a.cluster, b.cluster))
	})
	result := table{header: []string{"NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"}}
	for _, node := range nodes {
		row := []string{node.name, node.cluster, unknownCell, unknownCell, unknownCell, unknownCell}
		if node.usage != nil {
			row = []string{
				node.name, node.cluster,
				formatCores(node.usage), formatPercentage(*node.usage.Cpu(), *node.available.Cpu()),
				formatBytes(node.usage), formatPercentage(*node.usage.Memory(), *node.available.Memory()),
			}
		}
		result.rows = append(result.rows, row)
	}
	return result
}

// formatPercentage returns the used quantity in percent of the available quantity.
func formatPercentage(used, available resource.Quantity) string {
	if available.IsZero() {
		return unknownCell
	}
	return fmt.Sprintf("%d%%", int64(float64(used.MilliValue())/float64(available.MilliValue())*100))
}

// sumUsage returns the usage of all containers of a pod.
func sumUsage(containers []metricsv1beta1.ContainerMetrics) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range containers {
		addUsage(sum, containers[i].Usage)
	}
	return sum
}

func addUsage(sum, usage corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		quantity := sum[name]
		quantity.Add(usage[name])
		sum[name] = quantity
	}
}

func (p *topPodOptions) newPodTable(pods []podUsage) table {
	slices.SortStableFunc(pods, func(a, b podUsage) int {
		return cmp.Or(
			compareUsage(p.sortBy, sumUsage(a.metrics.Containers), sumUsage(b.metrics.Containers)),
			cmp.Compare(a.metrics.Namespace, b.metrics.Namespace), cmp.Compare(a.metrics.Name, b.metrics.Name), cmp.Compare(a.cluster, b.cluster),
		)
	})
	// Optional columns come before the name.
	var before []string
	if p.allNamespaces {
		before = append(before, "NAMESPACE")
	}
	if p.showsContainers {
		before = append(before, "POD")
	}
	result := table{header: append(slices.Clone(before), "NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)")}
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		addUsage(sum, sumUsage(pod.metrics.Containers))
		result.rows = append(result.rows, p.newPodRows(pod)...)
	}
	if p.showsSum && len(pods) > 0 {
		blank := slices.Repeat([]string{""}, len(before)+2)
		result.rows = append(result.rows, slices.Concat(blank, []string{"________", "________"}),
			slices.Concat(blank, []string{formatCores(sum), formatBytes(sum)}))
	}
	return result
}

// newPodRows returns one row for a pod, or one row for each of its containers.
func (p *topPodOptions) newPodRows(pod podUsage) [][]string {
	var before []string
	if p.allNamespaces {
		before = append(before, pod.metrics.Namespace)
	}
	if !p.showsContainers {
		usage := sumUsage(pod.metrics.Containers)
		return [][]string{append(before, pod.metrics.Name, pod.cluster, formatCores(usage), formatBytes(usage))}
	}
	containers := slices.Clone(pod.metrics.Containers)
	slices.SortStableFunc(containers, func(a, b metricsv1beta1.ContainerMetrics) int {
		return cmp.Or(compareUsage(p.sortBy, a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
	})
	var rows [][]string
	for i := range containers {
		rows = append(rows, append(slices.Clone(before), pod.metrics.Name, containers[i].Name, pod.cluster, formatCores(containers[i].Usage),
			formatBytes(containers[i].Usage)))
	}
	return rows
}
