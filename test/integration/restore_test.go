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
	"karmada.io/karmada/internal/standalone/etcd"
	"karmada.io/karmada/internal/testenv"
)

const (
	// templatesPerGroup is how many templates change in the same way after the backup.
	templatesPerGroup = 25
	// changeRounds is how often one group changes. All groups together change about 1000 times.
	changeRounds = 36
)

// restoreFixture is a control plane that is restored from a backup. It has a push-mode member and a
// pull-mode member.
type restoreFixture struct {
	env        *testenv.Env
	t          *testing.T
	pullMember *pullCluster
	namespace  string
	snapshot   string
}

// group returns ConfigMaps with one label, which the policy with the same name selects.
func (r *restoreFixture) group(name string) (group []*corev1.ConfigMap) {
	for i := range templatesPerGroup {
		template := configMap(r.namespace, fmt.Sprintf("%s-%02d", name, i))
		template.Labels = map[string]string{"group": name}
		group = append(group, template)
	}
	return group
}

func (r *restoreFixture) policy(name string, clusters ...string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: policyv1alpha1.PropagationSpec{Placement: placementOn(clusters...), ResourceSelectors: []policyv1alpha1.ResourceSelector{{
			APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": name}},
		}}},
	}
}

func (r *restoreFixture) clientOf(cluster string) client.Client {
	if cluster == r.pullMember.name {
		return r.pullMember.member.Client
	}
	return memberClient(r.env, cluster)
}

func (r *restoreFixture) clusters() []string { return []string{member1, r.pullMember.name} }

func (r *restoreFixture) createTemplates(group []*corev1.ConfigMap) {
	for _, template := range group {
		r.env.Create(r.t, template)
	}
}

// awaitTemplates waits until a cluster has all templates and check returns no error for them.
func (r *restoreFixture) awaitTemplates(cluster string, group []*corev1.ConfigMap, check func(*corev1.ConfigMap) error) {
	r.t.Helper()
	for _, template := range group {
		await(r.t, r.clientOf(cluster), template, check)
	}
}

// managedUIDs returns the UIDs of all managed ConfigMaps in both members.
func (r *restoreFixture) managedUIDs(ctx context.Context) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	for _, cluster := range r.clusters() {
		list := &corev1.ConfigMapList{}
		if err := r.clientOf(cluster).List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{workv1alpha1.ManagedByKarmadaLabel: "true"}); err != nil {
			return nil, err
		}
		for i := range list.Items {
			found[list.Items[i].UID] = cluster + "/" + list.Items[i].Name
		}
	}
	return found, nil
}

// checkNoneDeleted returns an error if a member lacks one of the objects in before.
func (r *restoreFixture) checkNoneDeleted(ctx context.Context, before map[types.UID]string) error {
	now, err := r.managedUIDs(ctx)
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

// restoreSnapshot restores the storage from the snapshot while components and agents run.
func (r *restoreFixture) restoreSnapshot() {
	r.t.Helper()
	key, value := epochEntry(r.t)
	if err := r.env.Replace(r.t.Context(), func() error {
		restored, before := r.env.Storage()+".restored", r.env.Storage()+".before"
		if err := etcd.RestoreSnapshot(r.t.Context(), etcd.RestoreOptions{
			Snapshot: r.snapshot, DataDir: restored, ReplacedDir: r.env.Storage(), ExtraKeys: map[string]string{key: value},
		}); err != nil {
			return err
		}
		return errors.Join(os.Rename(r.env.Storage(), before), os.Rename(restored, r.env.Storage()))
	}); err != nil {
		r.t.Fatal(err)
	}
}

// epochEntry returns the key and value that `karmada restore` writes into the restored storage.
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

// checkDeletionHeld returns an error unless the deletion of the Work waits until a user confirms the
// restore.
func checkDeletionHeld(memberWork *workv1alpha1.Work) error {
	return checkCondition(memberWork.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, workv1alpha1.WorkRestoreNotConfirmedReason, "The control plane is restored from a backup of ")
}

// TestRestoredControlPlaneDeletesNothingUntilConfirmed restores a backup that lacks about 1000
// changes while the components and an agent run.
func TestRestoredControlPlaneDeletesNothingUntilConfirmed(t *testing.T) {
	env := aloneForLong(t)
	r := &restoreFixture{env: env, t: t, pullMember: newPullCluster(t, env, "pull-restored"), namespace: env.Namespace(t), snapshot: filepath.Join(t.TempDir(), "snapshot")}
	running := r.pullMember.startAgent(t)
	r.pullMember.awaitReady(t)
	stay, gone, moved, late, back := r.group("stay"), r.group("gone"), r.group("moved"), r.group("late"), r.group("back")
	env.Create(t, r.policy("stay", r.clusters()...), r.policy("gone", r.clusters()...), r.policy("late", r.clusters()...), r.policy("moved", member1), r.policy("back", r.pullMember.name))
	for _, group := range [][]*corev1.ConfigMap{stay, gone, moved} {
		r.createTemplates(group)
		r.awaitTemplates(member1, group, exists)
	}
	r.awaitTemplates(r.pullMember.name, stay, exists)
	r.createTemplates(back)
	r.awaitTemplates(r.pullMember.name, gone, exists)
	r.awaitTemplates(r.pullMember.name, back, exists)
	_ = running.stop(t)
	r.saveSnapshotDuringMove(back)
	running = r.pullMember.startAgent(t)

	last := r.makeManyChanges(stay, gone, moved, late)
	before, err := r.managedUIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.restoreSnapshot()

	// The members have the restored templates, and keep the objects that the backup lacks.
	for _, cluster := range r.clusters() {
		r.awaitTemplates(cluster, stay, hasColor("blue"))
		r.awaitTemplates(cluster, gone, exists)
		r.awaitTemplates(cluster, late, exists)
	}
	r.awaitTemplates(member1, moved, exists)
	// The deletion of a template is held now.
	deleted := stay[0]
	deleteObject(t, env.Karmada, emptyObject(deleted))
	for _, cluster := range r.clusters() {
		await(t, env.Karmada, workOf(t, cluster, deleted), checkDeletionHeld)
		r.awaitRestoreWarning(cluster)
	}
	testenv.Holds(t, "nothing is deleted before the confirmation", quietPeriod, func(ctx context.Context) error { return r.checkNoneDeleted(ctx, before) })

	testenv.Update(t, env.Karmada, epoch.NewConfigMap(domain.Epoch{}), func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: c.Data[clusterv1alpha1.EpochIDKey]}
	})
	for uid, name := range before {
		if strings.HasSuffix(name, "/"+deleted.Name) || strings.Contains(name, "/back-") {
			delete(before, uid)
		}
	}
	for _, template := range back {
		awaitGone(t, r.clientOf(r.pullMember.name), emptyObject(template))
	}
	for _, cluster := range r.clusters() {
		awaitGone(t, r.clientOf(cluster), deleted)
	}
	// No component keeps state from before the restore: changes are delivered, and then nothing
	// is written any more.
	for _, template := range stay[1:] {
		testenv.Update(t, env.Karmada, configMap(r.namespace, template.Name), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": last + "-again"} })
	}
	for _, cluster := range r.clusters() {
		r.awaitTemplates(cluster, stay[1:], hasColor(last+"-again"))
	}
	awaitNoWrites(t, env, r.pullMember.member)
	if err := r.checkNoneDeleted(t.Context(), before); err != nil {
		t.Errorf("after the confirmation: %v", err)
	}
	select {
	case <-running.done:
		t.Errorf("the agent ended: %v", running.err)
	default:
	}
}

// setPlacement changes the placement of a group.
func (r *restoreFixture) setPlacement(group, cluster string) {
	r.t.Helper()
	testenv.Update(r.t, r.env.Karmada, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: group}},
		func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(cluster) })
}

// saveSnapshotDuringMove saves a snapshot in which the agent, which does not run, is permitted
// to delete a group of objects. Then it moves that group back to the cluster of the agent.
func (r *restoreFixture) saveSnapshotDuringMove(back []*corev1.ConfigMap) {
	r.t.Helper()
	r.setPlacement("back", member1)
	for _, template := range back {
		await(r.t, r.env.Karmada, workOf(r.t, r.pullMember.name, template), func(memberWork *workv1alpha1.Work) error {
			if memberWork.DeletionTimestamp == nil || domain.PermittingEpochID(memberWork) == "" {
				return fmt.Errorf("annotations %v of Work %s", memberWork.Annotations, memberWork.Name)
			}
			return nil
		})
	}
	r.awaitTemplates(member1, back, exists)
	if _, err := etcd.SaveSnapshot(r.t.Context(), r.env.Storage(), r.env.Certificates(), r.snapshot, "/registry/"); err != nil {
		r.t.Fatal(err)
	}
	r.setPlacement("back", r.pullMember.name)
	for _, template := range back {
		await(r.t, r.env.Karmada, workOf(r.t, r.pullMember.name, template), func(memberWork *workv1alpha1.Work) error {
			if memberWork.DeletionTimestamp != nil {
				return fmt.Errorf("Work %s is still being deleted", memberWork.Name)
			}
			return nil
		})
		awaitGone(r.t, memberClient(r.env, member1), emptyObject(template))
	}
}

// makeManyChanges makes about 1000 changes, waits until the members have them, and returns the
// last color of the group "stay".
func (r *restoreFixture) makeManyChanges(stay, gone, moved, late []*corev1.ConfigMap) (last string) {
	r.t.Helper()
	r.createTemplates(late)
	for _, template := range gone {
		deleteObject(r.t, r.env.Karmada, emptyObject(template))
	}
	r.setPlacement("moved", r.pullMember.name)
	for round := range changeRounds {
		last = fmt.Sprintf("round-%02d", round)
		change := client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"`+last+`"}}`))
		for _, template := range stay {
			if err := r.env.Karmada.Patch(r.t.Context(), template.DeepCopy(), change); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for _, cluster := range r.clusters() {
		r.awaitTemplates(cluster, stay, hasColor(last))
		r.awaitTemplates(cluster, late, exists)
		for _, template := range gone {
			awaitGone(r.t, r.clientOf(cluster), template)
		}
	}
	r.awaitTemplates(r.pullMember.name, moved, exists)
	for _, template := range moved {
		awaitGone(r.t, memberClient(r.env, member1), template)
	}
	return last
}

// awaitRestoreWarning waits for the event on the Cluster that warns about the restore.
func (r *restoreFixture) awaitRestoreWarning(cluster string) {
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
		return errors.New("there is no such event")
	})
}
