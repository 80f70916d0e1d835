package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	domain "karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/testenv"
)

const (
	// perGroup is how many templates meet the same fate after the backup.
	perGroup = 25
	// rounds of changes of one group make a thousand changes together with the others.
	rounds = 36
)

// restoration is a control plane with one pushed and one pulled member that is taken
// back in time.
type restoration struct {
	env       *testenv.Env
	t         *testing.T
	pulled    *pulled
	namespace string
	snapshot  string
}

// group are ConfigMaps of one label, which a policy of that name selects.
func (r *restoration) group(name string) (group []*corev1.ConfigMap) {
	for i := range perGroup {
		template := configMap(r.namespace, fmt.Sprintf("%s-%02d", name, i))
		template.Labels = map[string]string{"group": name}
		group = append(group, template)
	}
	return group
}

func (r *restoration) policy(name string, clusters ...string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: policyv1alpha1.PropagationSpec{Placement: on(clusters...), ResourceSelectors: []policyv1alpha1.ResourceSelector{{
			APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": name}},
		}}},
	}
}

func (r *restoration) side(cluster string) client.Client {
	if cluster == r.pulled.name {
		return r.pulled.member.Client
	}
	return member(r.env, cluster)
}

func (r *restoration) clusters() []string { return []string{member1, r.pulled.name} }

func (r *restoration) create(group []*corev1.ConfigMap) {
	for _, template := range group {
		r.env.Create(r.t, template)
	}
}

// awaitIn waits until a cluster has a whole group, and check finds nothing wrong.
func (r *restoration) awaitIn(cluster string, group []*corev1.ConfigMap, check func(*corev1.ConfigMap) error) {
	r.t.Helper()
	for _, template := range group {
		await(r.t, r.side(cluster), template, check)
	}
}

// uids are those of all ConfigMaps of ours in both members.
func (r *restoration) uids(ctx context.Context) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	for _, cluster := range r.clusters() {
		list := &corev1.ConfigMapList{}
		if err := r.side(cluster).List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{workv1alpha1.ManagedByKarmadaLabel: "true"}); err != nil {
			return nil, err
		}
		for i := range list.Items {
			found[list.Items[i].UID] = cluster + "/" + list.Items[i].Name
		}
	}
	return found, nil
}

// lost returns an error when a member lacks one of those objects.
func (r *restoration) lost(ctx context.Context, before map[types.UID]string) error {
	now, err := r.uids(ctx)
	if err != nil {
		return err
	}
	for uid, name := range before {
		if now[uid] == "" {
			return fmt.Errorf("%s was deleted", name)
		}
	}
	return nil
}

// restore takes the storage back to the snapshot while components and agents run.
func (r *restoration) restore() {
	r.t.Helper()
	key, value := epochEntry(r.t)
	if err := r.env.Replace(r.t.Context(), func() error {
		restored, before := r.env.Storage()+".restored", r.env.Storage()+".before"
		if err := standalone.RestoreSnapshot(r.t.Context(), standalone.RestoreOptions{
			Snapshot: r.snapshot, DataDir: restored, ReplacedDir: r.env.Storage(), ExtraKeys: map[string]string{key: value},
		}); err != nil {
			return err
		}
		return errors.Join(os.Rename(r.env.Storage(), before), os.Rename(restored, r.env.Storage()))
	}); err != nil {
		r.t.Fatal(err)
	}
}

// epochEntry is what `karmada restore` writes into the restored storage.
func epochEntry(t *testing.T) (key, value string) {
	t.Helper()
	object := epoch.NewConfigMap(domain.New("restored", domain.CauseRestored, time.Now(), time.Now()))
	object.UID = "restored"
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return "/registry/configmaps/" + clusterv1alpha1.NamespaceKarmadaSystem + "/" + clusterv1alpha1.EpochName, string(encoded)
}

// held reports what is wrong with a Work whose deletion must wait for the confirmation.
func held(of *workv1alpha1.Work) error {
	return condition(of.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, workv1alpha1.WorkRestoreNotConfirmedReason, "The control plane is restored from a backup of ")
}

// TestARestoredControlPlaneDeletesNothingUntilItIsConfirmed takes the storage back by a
// thousand changes, under components and an agent that run on.
func TestARestoredControlPlaneDeletesNothingUntilItIsConfirmed(t *testing.T) {
	env := alone(t)
	r := &restoration{env: env, t: t, pulled: newPulled(t, env, "pull-restored"), namespace: env.Namespace(t), snapshot: filepath.Join(t.TempDir(), "snapshot")}
	running := r.pulled.run(t)
	r.pulled.awaitReady(t)
	stay, gone, moved, late, back := r.group("stay"), r.group("gone"), r.group("moved"), r.group("late"), r.group("back")
	env.Create(t, r.policy("stay", r.clusters()...), r.policy("gone", r.clusters()...), r.policy("late", r.clusters()...), r.policy("moved", member1), r.policy("back", r.pulled.name))
	for _, group := range [][]*corev1.ConfigMap{stay, gone, moved} {
		r.create(group)
		r.awaitIn(member1, group, exists)
	}
	r.awaitIn(r.pulled.name, stay, exists)
	r.create(back)
	r.awaitIn(r.pulled.name, gone, exists)
	r.awaitIn(r.pulled.name, back, exists)
	_ = running.stop(t)
	r.saveBetween(back)
	running = r.pulled.run(t)

	last := r.changeALot(stay, gone, moved, late)
	before, err := r.uids(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.restore()

	// The members are as the backup says, and keep what it does not know.
	for _, cluster := range r.clusters() {
		r.awaitIn(cluster, stay, hasColor("blue"))
		r.awaitIn(cluster, gone, exists)
		r.awaitIn(cluster, late, exists)
	}
	r.awaitIn(member1, moved, exists)
	// Who deletes a template now has to wait.
	doomed := stay[0]
	deleteObject(t, env.Karmada, empty(doomed))
	for _, cluster := range r.clusters() {
		await(t, env.Karmada, workOf(t, cluster, doomed), held)
		r.warned(cluster)
	}
	testenv.Holds(t, "nothing is deleted before the confirmation", quiet, func(ctx context.Context) error { return r.lost(ctx, before) })

	testenv.Update(t, env.Karmada, epoch.NewConfigMap(domain.Epoch{}), func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: c.Data[clusterv1alpha1.EpochIDKey]}
	})
	for uid, name := range before {
		if strings.HasSuffix(name, "/"+doomed.Name) || strings.Contains(name, "/back-") {
			delete(before, uid)
		}
	}
	for _, template := range back {
		awaitGone(t, r.side(r.pulled.name), empty(template))
	}
	for _, cluster := range r.clusters() {
		awaitGone(t, r.side(cluster), doomed)
	}
	// Nothing remembers the future that was lost: all goes on, and then nothing does.
	for _, template := range stay[1:] {
		testenv.Update(t, env.Karmada, configMap(r.namespace, template.Name), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": last + "-again"} })
	}
	for _, cluster := range r.clusters() {
		r.awaitIn(cluster, stay[1:], hasColor(last+"-again"))
	}
	awaitNoWrites(t, env, r.pulled.member)
	if err := r.lost(t.Context(), before); err != nil {
		t.Errorf("after the confirmation: %v", err)
	}
	select {
	case <-running.ended:
		t.Errorf("the agent ended: %v", running.err)
	default:
	}
}

// moveTo changes the placement of a group.
func (r *restoration) moveTo(group, cluster string) {
	r.t.Helper()
	testenv.Update(r.t, r.env.Karmada, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: group}},
		func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = on(cluster) })
}

// saveBetween saves a snapshot in which the agent, which does not run, may delete a group
// of objects, and then moves that group back to the cluster of the agent.
func (r *restoration) saveBetween(back []*corev1.ConfigMap) {
	r.t.Helper()
	r.moveTo("back", member1)
	for _, template := range back {
		await(r.t, r.env.Karmada, workOf(r.t, r.pulled.name, template), func(of *workv1alpha1.Work) error {
			if of.DeletionTimestamp == nil || domain.PermittingEpochID(of) == "" {
				return fmt.Errorf("annotations %v of Work %s", of.Annotations, of.Name)
			}
			return nil
		})
	}
	r.awaitIn(member1, back, exists)
	if _, err := standalone.SaveSnapshot(r.t.Context(), r.env.Storage(), r.snapshot, "/registry/"); err != nil {
		r.t.Fatal(err)
	}
	r.moveTo("back", r.pulled.name)
	for _, template := range back {
		await(r.t, r.env.Karmada, workOf(r.t, r.pulled.name, template), func(of *workv1alpha1.Work) error {
			if of.DeletionTimestamp != nil {
				return fmt.Errorf("Work %s is still in deletion", of.Name)
			}
			return nil
		})
		awaitGone(r.t, member(r.env, member1), empty(template))
	}
}

// changeALot makes a thousand changes, waits until the members have them, and returns
// the last color of what stays.
func (r *restoration) changeALot(stay, gone, moved, late []*corev1.ConfigMap) (last string) {
	r.t.Helper()
	r.create(late)
	for _, template := range gone {
		deleteObject(r.t, r.env.Karmada, empty(template))
	}
	r.moveTo("moved", r.pulled.name)
	for round := range rounds {
		last = fmt.Sprintf("round-%02d", round)
		change := client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"`+last+`"}}`))
		for _, template := range stay {
			if err := r.env.Karmada.Patch(r.t.Context(), template.DeepCopy(), change); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for _, cluster := range r.clusters() {
		r.awaitIn(cluster, stay, hasColor(last))
		r.awaitIn(cluster, late, exists)
		for _, template := range gone {
			awaitGone(r.t, r.side(cluster), template)
		}
	}
	r.awaitIn(r.pulled.name, moved, exists)
	for _, template := range moved {
		awaitGone(r.t, member(r.env, member1), template)
	}
	return last
}

// warned waits for the event on the Cluster.
func (r *restoration) warned(cluster string) {
	r.t.Helper()
	testenv.Eventually(r.t, "a warning on Cluster "+cluster, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := r.env.Karmada.List(ctx, events); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == cluster && event.Reason == clusterv1alpha1.EventReasonRestoreNotConfirmed {
				return nil
			}
		}
		return errors.New("there is none")
	})
}
