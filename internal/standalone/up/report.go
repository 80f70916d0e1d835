package up

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/console"
	domain "karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/work"
)

// memberTimeout limits the time for listing one member's objects.
const memberTimeout = 30 * time.Second

// differenceReport lists how member clusters differ from the control plane's desired state.
type differenceReport struct {
	// Restored describes the restored backup. Confirmed reports whether a user has confirmed the
	// restore.
	Restored  string          `json:"restored,omitempty"`
	Confirmed bool            `json:"confirmed"`
	Clusters  []clusterReport `json:"clusters"`
}

type clusterReport struct {
	Cluster string `json:"cluster"`
	// Failure is the reason why some or all of the cluster's objects could not be listed.
	Failure     string              `json:"failure,omitempty"`
	Differences []domain.Difference `json:"differences"`
}

// output returns the report for all output formats.
func (d differenceReport) output() console.Output {
	output := console.Output{Header: []string{"CLUSTER", "DIFFERENCE", "OBJECT"}, ColumnGap: 3, Object: d}
	row := func(cluster, difference, object string) {
		output.Rows = append(output.Rows, []string{cluster, difference, object})
	}
	for _, each := range d.Clusters {
		if each.Failure != "" {
			row(each.Cluster, "unknown", each.Failure)
		}
		for _, difference := range each.Differences {
			name := difference.Key.Name
			if difference.Key.Namespace != "" {
				name = difference.Key.Namespace + "/" + name
			}
			object := difference.Object.String() + " " + name
			row(each.Cluster, string(difference.Kind), object)
			output.Names = append(output.Names, each.Cluster+"/"+strings.ToLower(difference.Object.String())+"/"+name)
		}
	}
	return output
}

// showReport prints how member clusters differ from the control plane's desired state.
func (r *restoreOptions) showReport(ctx context.Context, dir dataDir, out, advice io.Writer) error {
	config, err := r.clientConfig(ctx, dir)
	if err != nil {
		return err
	}
	found, err := newReport(ctx, config)
	if err != nil {
		return err
	}
	if err := r.format.Print(out, found.output()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !r.format.IsTable() {
		return nil
	}
	total := 0
	for _, each := range found.Clusters {
		total += len(each.Differences)
	}
	switch {
	case found.Restored == "":
		fmt.Fprintf(advice, "\nThe control plane was not restored. Found %s in %s.\n", countOf(total, "difference"),
			countOf(len(found.Clusters), "cluster"))
	case found.Confirmed:
		fmt.Fprintf(advice, "\nThe control plane is %s. The restore is confirmed. Found %s in %s.\n", found.Restored,
			countOf(total, "difference"), countOf(len(found.Clusters), "cluster"))
	default:
		fmt.Fprintf(advice, "\nThe control plane is %s. Found %s in %s. No objects are deleted in the clusters until `karmada restore --confirm`. Orphans, which no Work describes, stay even then.\n",
			found.Restored, countOf(total, "difference"), countOf(len(found.Clusters), "cluster"))
	}
	return nil
}

func newReport(ctx context.Context, config *rest.Config) (differenceReport, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return differenceReport{}, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	e, _, err := readEpoch(ctx, client)
	if err != nil {
		return differenceReport{}, err
	}
	clusters, err := listClusters(ctx, config)
	if err != nil {
		return differenceReport{}, err
	}
	found := differenceReport{Confirmed: e.Confirmed, Clusters: []clusterReport{}}
	if e.NeedsConfirmation() || e.Confirmed {
		found.Restored = e.DescribeOrigin()
	}
	for i := range clusters {
		each, err := reportCluster(ctx, config, e, &clusters[i])
		if err != nil {
			return differenceReport{}, err
		}
		found.Clusters = append(found.Clusters, each)
	}
	return found, nil
}

// reportCluster compares one member's objects with its Works. If the member cannot be reached, the
// report contains the error.
func reportCluster(ctx context.Context, config *rest.Config, e domain.Epoch, cluster *clusterv1alpha1.Cluster) (clusterReport, error) {
	works, err := listWorks(ctx, config, cluster.Name)
	if err != nil {
		return clusterReport{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	listing, err := member.ListManaged(ctx, memberProxyConfig(config, cluster.Name))
	objects := managedObjects(listing, work.ExecutionNamespace(cluster.Name))
	found := clusterReport{Cluster: cluster.Name, Differences: domain.Differences(e, works, objects, listing.Kinds.Has)}
	if err != nil {
		found.Failure = err.Error()
	}
	return found, nil
}

func listWorks(ctx context.Context, config *rest.Config, cluster string) ([]workv1alpha1.Work, error) {
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	karmada, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	works := &workv1alpha1.WorkList{}
	if err := karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster))); err != nil {
		return nil, fmt.Errorf("listing the Works of cluster %q: %w", cluster, err)
	}
	return works.Items, nil
}

// memberProxyConfig returns the client configuration for reaching a member through the control plane's
// proxy.
func memberProxyConfig(config *rest.Config, cluster string) *rest.Config {
	member := rest.CopyConfig(config)
	member.Host = strings.TrimSuffix(config.Host, "/") + "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster + "/proxy"
	member.QPS = -1
	return member
}

// managedObjects returns the listed objects that belong to Works in the given namespace.
func managedObjects(listing member.ManagedObjects, namespace string) []domain.MemberObject {
	var found []domain.MemberObject
	for _, each := range listing.Objects {
		annotations := each.GetAnnotations()
		workKey := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation],
			Name: annotations[workv1alpha1.WorkNameAnnotation]}
		if workKey.Namespace == namespace {
			found = append(found, domain.MemberObject{
				Kind: each.GroupVersionKind().GroupKind(), Key: domain.ObjectKey{Namespace: each.GetNamespace(), Name: each.GetName()},
				Work: workKey, Created: each.GetCreationTimestamp().Time,
			})
		}
	}
	return found
}
