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
	"karmada.io/karmada/internal/access/managedobjects"
	"karmada.io/karmada/internal/console"
	domain "karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/work"
)

// memberTimeout bounds how long one member is asked.
const memberTimeout = 30 * time.Second

// report is how members differ from what the control plane wants.
type report struct {
	// Restored says where the epoch came from, Confirmed whether a user confirmed it.
	Restored  string          `json:"restored,omitempty"`
	Confirmed bool            `json:"confirmed"`
	Clusters  []clusterReport `json:"clusters"`
}

type clusterReport struct {
	Cluster string `json:"cluster"`
	// Failure says why the cluster, or a part of it, could not be asked.
	Failure     string              `json:"failure,omitempty"`
	Differences []domain.Difference `json:"differences"`
}

// output is the report in all formats.
func (r report) output() console.Output {
	answer := console.Output{Header: []string{"CLUSTER", "DIFFERENCE", "OBJECT"}, ColumnGap: 3, Object: r}
	row := func(cluster, difference, object string) {
		answer.Rows = append(answer.Rows, []string{cluster, difference, object})
	}
	for _, each := range r.Clusters {
		if each.Failure != "" {
			row(each.Cluster, "not known", each.Failure)
		}
		for _, difference := range each.Differences {
			name := difference.Key.Name
			if difference.Key.Namespace != "" {
				name = difference.Key.Namespace + "/" + name
			}
			object := difference.Object.String() + " " + name
			row(each.Cluster, string(difference.Kind), object)
			answer.Names = append(answer.Names, each.Cluster+"/"+strings.ToLower(difference.Object.String())+"/"+name)
		}
	}
	return answer
}

// showReport prints how members differ from what the control plane wants.
func (o *restoreOptions) showReport(ctx context.Context, dir dataDir, out, advice io.Writer) error {
	config, err := o.connect(dir)
	if err != nil {
		return err
	}
	found, err := makeReport(ctx, config)
	if err != nil {
		return err
	}
	if err := o.format.Print(out, found.output()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !o.format.IsTable() {
		return nil
	}
	total := 0
	for _, each := range found.Clusters {
		total += len(each.Differences)
	}
	switch {
	case found.Restored == "":
		fmt.Fprintf(advice, "\nThe control plane was not restored. %s in %s.\n", counted(total, "difference"), counted(len(found.Clusters), "cluster"))
	case found.Confirmed:
		fmt.Fprintf(advice, "\nThe control plane is %s, which is confirmed. %s in %s.\n", found.Restored, counted(total, "difference"), counted(len(found.Clusters), "cluster"))
	default:
		fmt.Fprintf(advice, "\nThe control plane is %s. %s in %s. Nothing is deleted in them until `karmada restore --confirm`; what no Work wants stays even then.\n",
			found.Restored, counted(total, "difference"), counted(len(found.Clusters), "cluster"))
	}
	return nil
}

func makeReport(ctx context.Context, config *rest.Config) (report, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return report{}, fmt.Errorf("making client of the control plane: %w", err)
	}
	e, _, err := readEpoch(ctx, client)
	if err != nil {
		return report{}, err
	}
	clusters, err := listClusters(ctx, config)
	if err != nil {
		return report{}, err
	}
	found := report{Confirmed: e.Confirmed, Clusters: []clusterReport{}}
	if e.NeedsConfirmation() || e.Confirmed {
		found.Restored = e.DescribeOrigin()
	}
	for i := range clusters {
		each, err := reportOf(ctx, config, e, &clusters[i])
		if err != nil {
			return report{}, err
		}
		found.Clusters = append(found.Clusters, each)
	}
	return found, nil
}

// reportOf compares one member with its Works. That the member cannot be asked is part of
// the report.
func reportOf(ctx context.Context, config *rest.Config, e domain.Epoch, cluster *clusterv1alpha1.Cluster) (clusterReport, error) {
	works, err := worksOf(ctx, config, cluster.Name)
	if err != nil {
		return clusterReport{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	listing, err := managedobjects.List(ctx, through(config, cluster.Name))
	objects := objectsOf(listing, work.ExecutionNamespace(cluster.Name))
	found := clusterReport{Cluster: cluster.Name, Differences: domain.Differences(e, works, objects, listing.Kinds.Has)}
	if err != nil {
		found.Failure = err.Error()
	}
	return found, nil
}

func worksOf(ctx context.Context, config *rest.Config, cluster string) ([]workv1alpha1.Work, error) {
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	karmada, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making client of the control plane: %w", err)
	}
	works := &workv1alpha1.WorkList{}
	if err := karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster))); err != nil {
		return nil, fmt.Errorf("listing the Works of cluster %q: %w", cluster, err)
	}
	return works.Items, nil
}

// through is the way to a member through the control plane.
func through(config *rest.Config, cluster string) *rest.Config {
	member := rest.CopyConfig(config)
	member.Host = strings.TrimSuffix(config.Host, "/") + "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster + "/proxy"
	member.QPS = -1
	return member
}

// objectsOf returns the objects of a listing that were made for Works in a namespace.
func objectsOf(listing managedobjects.Listing, space string) []domain.MemberObject {
	var found []domain.MemberObject
	for _, each := range listing.Objects {
		annotations := each.GetAnnotations()
		of := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation], Name: annotations[workv1alpha1.WorkNameAnnotation]}
		if of.Namespace == space {
			found = append(found, domain.MemberObject{
				Kind: each.GroupVersionKind().GroupKind(), Key: domain.ObjectKey{Namespace: each.GetNamespace(), Name: each.GetName()},
				Work: of, Created: each.GetCreationTimestamp().Time,
			})
		}
	}
	return found
}
