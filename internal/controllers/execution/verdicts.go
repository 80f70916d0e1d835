package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/domain/epoch"
)

const (
	// verdictPoll is when an agent looks again at a Work that waits for a verdict. The
	// verdict itself leads back here.
	verdictPoll = 30 * time.Second
	// spaceAge is for how long an agent believes that its control plane gives no verdicts.
	spaceAge = 2 * time.Second
)

// verdicts tells an agent what the control plane decided about deletions. An agent may
// write Works and not their namespace, which says whether verdicts are given: without
// that, an older control plane or another one deletes by deleting the Work.
type verdicts struct {
	karmada client.Reader
	epoch   judge.ReadEpoch
	now     func() time.Time

	mu sync.Mutex
	// required is true from the first time that the namespace said so: a namespace that
	// was just made anew may not say so yet.
	required bool
	read     time.Time
}

func newVerdicts(karmada client.Reader, epoch judge.ReadEpoch, now func() time.Time) *verdicts {
	return &verdicts{karmada: karmada, epoch: epoch, now: now}
}

// allow reports whether the objects of a deleted Work may be deleted, or released if they
// are to be preserved. If the epoch or the namespace cannot be read, they may not. A
// backup may hold verdicts, and namespaces that require none: neither counts until a user
// confirms the restore.
func (v *verdicts) allow(ctx context.Context, of *workv1alpha1.Work) (bool, error) {
	now, err := v.epoch(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
	case now.Unconfirmed() && !preserves(of):
		return false, nil
	case now.Permits(of):
		return true, nil
	case now.ID == "" && epoch.PermittedIn(of) != "":
		return false, fmt.Errorf("the permission to delete the objects of Work %s/%s names epoch %q, and the agent finds none: allow its user to list ConfigMap %s/%s",
			of.Namespace, of.Name, epoch.PermittedIn(of), clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName)
	}
	required, err := v.areRequired(ctx, of.Namespace)
	return err == nil && !required, err
}

func (v *verdicts) areRequired(ctx context.Context, namespace string) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.required || v.now().Sub(v.read) < spaceAge {
		return v.required, nil
	}
	space := &corev1.Namespace{}
	if err := v.karmada.Get(ctx, client.ObjectKey{Name: namespace}, space); err != nil {
		return true, fmt.Errorf("reading namespace %s, which says whether a deletion needs a verdict of the control plane: %w", namespace, err)
	}
	v.required, v.read = space.Annotations[workv1alpha1.DeletionVerdictsAnnotation] == workv1alpha1.DeletionVerdictsRequired, v.now()
	return v.required, nil
}
