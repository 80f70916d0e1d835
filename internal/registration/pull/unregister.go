package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// Unregister ends the membership of a cluster with an agent.
type Unregister struct {
	// Name is the name of the Cluster.
	Name string
	// Namespace is that of the agent in the member, AgentName the name of its
	// Deployment. Default karmada-system, karmada-agent.
	Namespace, AgentName string
	// ClusterNamespace is that of the cluster's Secrets. Default karmada-cluster, or
	// what the agent says it is.
	ClusterNamespace string
	// Wait is how long the removal from the control plane may take, and then again
	// that from the member. Default 60 s.
	Wait time.Duration
	// Force goes on where a side does not answer, and takes finalizers off where
	// nobody does in time, which leaves in the member what was propagated to it.
	Force bool
	// DryRun checks everything, changes nothing and logs what would be deleted.
	DryRun bool
	// Karmada leads to the control plane; nil means with the kubeconfig of the agent,
	// in the context that the agent uses.
	Karmada *rest.Config
	// Member leads to the cluster.
	Member *rest.Config
	// MemberOrigin says where Member was read from, for messages. It may be empty.
	MemberOrigin string
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
}

// Run takes back what was propagated, deletes the Cluster, and then deletes from
// the member what registering has put there.
func (u Unregister) Run(ctx context.Context) error {
	u.Namespace = cmp.Or(u.Namespace, clusterv1alpha1.NamespaceKarmadaSystem)
	u.AgentName = cmp.Or(u.AgentName, AgentName)
	u.Wait = cmp.Or(u.Wait, registration.DefaultWait)
	member, err := side.Member(u.Name, u.Member, u.Log)
	if err != nil {
		return err
	}
	leaving := &departure{Unregister: u, member: member}
	leaving.memberID, err = leaving.openMember(ctx)
	if err != nil {
		return err
	}
	if err := leaving.openKarmada(ctx); err != nil {
		return err
	}
	if err := leaving.find(ctx); err != nil {
		return err
	}
	if u.DryRun {
		leaving.tellPlan()
		return nil
	}
	if err := leaving.leaveKarmada(ctx); err != nil {
		return err
	}
	return leaving.cleanUpMember(ctx)
}

// departure is an Unregister under way.
type departure struct {
	Unregister
	member *side.Side
	// memberID is the identity of the member, empty if it does not answer.
	memberID string
	// karmada is nil if the control plane does not answer.
	karmada *side.Side
	// borrowed tells that it is reached with the credentials of the agent.
	borrowed bool
	// cluster is nil if there is none.
	cluster *clusterv1alpha1.Cluster
	// kept tells that the control plane takes the agent's rights away by itself.
	kept bool
}

// openMember reads the identity of the member.
func (d *departure) openMember(ctx context.Context) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	id, err = d.member.Identify(ctx, d.MemberOrigin)
	if err != nil && d.Force && d.Karmada != nil {
		d.logf("warning: %s will not be cleaned up: %v", d.member.Name, err)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w\nA member that is gone for good is removed with --force and the kubeconfig of the control plane in --karmada-config", err)
	}
	return id, nil
}

// find reads the Cluster and makes sure that it is the member's.
func (d *departure) find(ctx context.Context) error {
	if d.karmada == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	object, err := d.karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: d.Name}})
	// One who may not look has named the wrong kubeconfig, unless it is the agent,
	// whose rights may have gone with its Cluster.
	mayNot := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
	if err != nil && d.Force && (d.borrowed || !mayNot) {
		d.logf("warning: the control plane will not be cleaned up: %v", err)
		d.karmada = nil
		return nil
	}
	if err != nil {
		gone := ""
		if d.borrowed && mayNot {
			gone = " An agent loses its rights with its Cluster, so that was probably deleted."
		}
		return fmt.Errorf("%w\nNothing was changed.%s With --force the agent is removed from %s all the same", err, gone, d.member.Name)
	}
	found, ok := object.(*clusterv1alpha1.Cluster)
	switch {
	case !ok && d.Force:
		d.logf("there is no Cluster %q in %s: cleaning up what is left", d.Name, d.karmada.Name)
		return nil
	case !ok:
		return fmt.Errorf("there is no Cluster %q in %s (%s); with --force what is left of its agent in %s is deleted", d.Name, d.karmada.Name, d.karmada.Host, d.member.Name)
	case found.Spec.SyncMode == clusterv1alpha1.Push:
		return fmt.Errorf("cluster %q is in Push mode: use unjoin", d.Name)
	}
	if d.memberID != "" {
		if err := registration.CheckID(d.member.Name, d.member.Host, d.memberID, found); err != nil {
			return err
		}
	}
	// Before anything is touched: with force the member would lose its agent.
	if err := admission.Deletable(found); err != nil {
		return fmt.Errorf("cluster %q: %w", d.Name, err)
	}
	d.cluster = found
	return nil
}

// leaveKarmada deletes the Cluster with its Works, and the rights of the agent.
func (d *departure) leaveKarmada(ctx context.Context) error {
	if d.karmada == nil {
		d.tellRemains()
		return nil
	}
	d.kept = d.keptByKarmada(ctx)
	if d.cluster != nil {
		if err := d.removeCluster(ctx); err != nil {
			return d.leaveBehind(ctx, err)
		}
	}
	return d.removeRights(ctx)
}

// leaveBehind goes on with the member where force is asked for and the agent's own
// rights do not suffice: the agent may have been the last to have had them.
func (d *departure) leaveBehind(ctx context.Context, err error) error {
	if !d.Force || !d.borrowed || ctx.Err() != nil {
		return err
	}
	d.logf("warning: the control plane was not cleaned up: %v", err)
	d.karmada = nil
	d.tellRemains()
	return nil
}

// removeCluster deletes the Cluster first: its Works go with it, and as long as it is
// there, what is bound to it brings new ones.
func (d *departure) removeCluster(ctx context.Context) error {
	err := d.karmada.Leave(ctx, side.Removal{Cluster: d.cluster, Wait: d.Wait, RefusedIsGone: d.borrowed, More: d.agentHolds})
	var held *side.HeldError
	if !d.Force || !errors.As(err, &held) {
		return err
	}
	d.karmada.LogForce(held)
	return d.force(ctx)
}

// agentHolds returns the Deployment of the agent, which deletes the objects of the Works
// in the member, if not all of its replicas are available.
func (d *departure) agentHolds(ctx context.Context, works int) []string {
	if works == 0 || d.memberID == "" {
		return nil
	}
	have, err := d.member.Get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.AgentName}})
	deployment, ok := have.(*appsv1.Deployment)
	if err != nil || !ok || deployment.Status.AvailableReplicas >= wanted(deployment) && wanted(deployment) > 0 {
		return nil
	}
	line := fmt.Sprintf("%s in %s, which deletes their objects: %s", d.member.Describe(deployment), d.member.Name, progress(deployment))
	if failure := replicaFailure(deployment); failure != "" {
		line += ", " + failure
	}
	return []string{line}
}

// awaitGone waits until the Cluster is gone. The rights of an agent go with its
// Cluster, so that whoever uses them hears of the end by being refused.
func (d *departure) awaitGone(ctx context.Context) error {
	err := d.karmada.AwaitGone(ctx, d.cluster)
	if d.borrowed && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		return nil
	}
	return err
}

// force lets the Works and the Cluster go although nobody has cleaned up.
func (d *departure) force(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, side.UndoTimeout)
	defer cancel()
	if err := d.karmada.Delete(ctx, d.cluster); err != nil {
		return err
	}
	if !d.borrowed {
		return d.karmada.Release(ctx, d.cluster)
	}
	// The agent may not delete its namespace, which the control plane does then.
	works := &workv1alpha1.WorkList{}
	if err := d.karmada.API.List(ctx, works, client.InNamespace(agent.ExecutionNamespace(d.Name))); err != nil {
		return fmt.Errorf("listing the Works of cluster %q: %w", d.Name, err)
	}
	for i := range works.Items {
		if err := d.karmada.TakeFinalizers(ctx, &works.Items[i]); err != nil {
			return err
		}
	}
	return d.awaitGone(ctx)
}

// keptByKarmada tells whether the control plane has granted the rights of the agent
// and takes them away by itself.
func (d *departure) keptByKarmada(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	have, err := d.karmada.Get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(d.Name)}})
	return err == nil && have != nil && have.GetLabels()[agent.ManagedLabel] == d.Name
}

// removeRights deletes the rights of the agent. With its own credentials it cannot.
func (d *departure) removeRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	switch {
	case d.borrowed && !d.kept:
		d.tellRemains()
		return nil
	case d.borrowed && d.cluster == nil:
		// They go with a Cluster, of which there was none. The agent may give up what
		// it is; as long as it does not, nobody else gets the name.
		return d.karmada.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(d.Name)}})
	case d.borrowed:
		return nil
	}
	var errs []error
	for _, right := range agent.Rights(d.Name, cmp.Or(d.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)) {
		have, err := d.karmada.Get(ctx, right)
		if err == nil && have != nil {
			err = d.karmada.Delete(ctx, have)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but the rights of its agent are not: %w", d.Name, err)
	}
	return nil
}

// tellRemains lists what an administrator of the control plane has to delete.
func (d *departure) tellRemains() {
	if d.karmada == nil {
		d.logf("warning: this may be left in the control plane, for its administrator to delete:")
		d.logf("  Cluster %s", d.Name)
	} else {
		d.logf("warning: this is left in the control plane, for its administrator to delete:")
	}
	for _, right := range agent.Rights(d.Name, cmp.Or(d.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)) {
		d.logf("  %s", d.member.Describe(right))
	}
}

// cleanUpMember deletes what registering has put into the member, the agent first,
// so that it does not come back.
func (d *departure) cleanUpMember(ctx context.Context) error {
	if d.memberID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	var errs []error
	for _, object := range d.agentObjects() {
		switch object.(type) {
		case *rbacv1.ClusterRoleBinding:
			errs = append(errs, d.installed().leaveBinding(ctx, d.member))
		case *rbacv1.ClusterRole:
			// It goes with the last who is bound to it.
		default:
			errs = append(errs, d.member.Delete(ctx, object))
		}
	}
	errs = append(errs, d.installed().leaveLimits(ctx, d.member))
	pushed := grant.Leftovers{Cluster: d.Name, Namespace: cmp.Or(d.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster), Log: d.Log}
	errs = append(errs, pushed.Delete(ctx, d.member))
	if err := errors.Join(errs...); err != nil {
		if d.Force {
			d.logf("warning: %v", err)
			return nil
		}
		return fmt.Errorf("%s was not cleaned up entirely: %w", d.member.Name, err)
	}
	return nil
}

// agentObjects are what registering has put into the member for the agent, in the
// order in which it is deleted.
func (d *departure) agentObjects() []client.Object {
	installed := d.installed()
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.AgentName}},
		installed.serviceAccount(), installed.binding(), installed.role(), installed.credentials(nil),
	}
}

// installed is what was registered, as far as its objects depend on it.
func (d *departure) installed() Register { return Register{Name: d.Name, Namespace: d.Namespace} }

func (d *departure) tellPlan() {
	if d.karmada != nil && d.cluster != nil {
		d.logf("would delete %s with its Works in %s", d.karmada.Describe(d.cluster), d.karmada.Name)
	}
	if d.memberID == "" {
		return
	}
	pushed := grant.Leftovers{Cluster: d.Name, Namespace: cmp.Or(d.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)}
	for _, object := range append(d.agentObjects(), pushed.Objects()...) {
		d.logf("would delete %s in %s", d.member.Describe(object), d.member.Name)
	}
}

func (u Unregister) logf(format string, args ...any) { registration.Log(u.Log).Printf(format, args...) }

// flagOf is the value of an argument --name=value of a container.
func flagOf(container corev1.Container, name string) string {
	for _, argument := range append(append([]string(nil), container.Command...), container.Args...) {
		if value, ok := strings.CutPrefix(argument, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}
