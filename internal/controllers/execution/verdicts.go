package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/domain/epoch"
)

const (
	// verdictPollInterval is the interval at which an agent checks a Work that waits for a verdict.
	// Normally the watch queues the Work as soon as the verdict is written.
	verdictPollInterval = 30 * time.Second
	// epochPollInterval is the interval at which the agent checks whether it may read the epoch. It is
	// short, because unregister waits for the deletion of the Works.
	epochPollInterval = 2 * time.Second
	// requirementTTL is how long the agent remembers that its control plane gives no verdicts,
	// before it reads the namespace again.
	requirementTTL = 2 * time.Second
)

// verdictReader reads the verdicts of the control plane: its decisions about the deletion of the
// objects of a Work. An annotation of the execution namespace says whether the control plane gives
// verdicts, because an agent may write Works but not this namespace. A control plane of an older
// release gives no verdicts. Then the deletion of the Work is itself the permission to delete its
// objects.
type verdictReader struct {
	karmada   client.Reader
	readEpoch deletionguard.EpochReader
	now       func() time.Time

	mu sync.Mutex
	// verdictsRequired stays true after the namespace has required verdicts once, because a
	// namespace that was just created again may not have the annotation yet.
	verdictsRequired bool
	lastRead         time.Time
}

func newVerdictReader(karmada client.Reader, epoch deletionguard.EpochReader, now func() time.Time) *verdictReader {
	return &verdictReader{karmada: karmada, readEpoch: epoch, now: now}
}

// epochError reports that the agent is not allowed to read the epoch of the control plane.
type epochError struct{ cause error }

func (e *epochError) Error() string { return e.cause.Error() }
func (e *epochError) Unwrap() error { return e.cause }

// isDeletionAllowed reports whether the objects of a deleted Work may be deleted, or released if
// they must be preserved. It returns an error if the epoch or the namespace cannot be read. A
// restored backup may contain old verdicts, and namespaces that require no verdicts. Until a user
// confirms the restore, both are ignored.
func (v *verdictReader) isDeletionAllowed(ctx context.Context, karmadaWork *workv1alpha1.Work) (bool, error) {
	epochNow, err := v.readEpoch(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return false, &epochError{fmt.Errorf("reading the epoch of the control plane: %w", err)}
	case err != nil:
		return false, fmt.Errorf("reading the epoch of the control plane: %w", err)
	case epochNow.NeedsConfirmation() && !preservesObjects(karmadaWork):
		return false, nil
	case epochNow.Permits(karmadaWork):
		return true, nil
	case epochNow.ID == "" && epoch.PermittingEpochID(karmadaWork) != "":
		return false, &epochError{fmt.Errorf("the permission to delete the objects of Work %s/%s names epoch %q, and the agent cannot read the epoch: allow its user to list ConfigMap %s/%s",
			karmadaWork.Namespace, karmadaWork.Name, epoch.PermittingEpochID(karmadaWork), clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName)}
	}
	required, err := v.requiresVerdicts(ctx, karmadaWork.Namespace)
	return err == nil && !required, err
}

func (v *verdictReader) requiresVerdicts(ctx context.Context, namespace string) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verdictsRequired || v.now().Sub(v.lastRead) < requirementTTL {
		return v.verdictsRequired, nil
	}
	executionNamespace := &corev1.Namespace{}
	if err := v.karmada.Get(ctx, client.ObjectKey{Name: namespace}, executionNamespace); err != nil {
		return true, fmt.Errorf("reading namespace %s to find out whether deletions need a verdict of the control plane: %w", namespace, err)
	}
	v.verdictsRequired, v.lastRead = executionNamespace.Annotations[workv1alpha1.DeletionVerdictsAnnotation] == workv1alpha1.DeletionVerdictsRequired, v.now()
	return v.verdictsRequired, nil
}
