// Package quotas checks ResourceBindings against the FederatedResourceQuotas of their namespace.
//
// An Enforcer watches bindings and quotas, and decides with package domain/quota. If several processes may
// admit objects, it records admitted requests in an annotation of a quota under the condition that the
// quota is unchanged, so that these processes decide one after another.
//
// Invariants: a request that uses no more than before is admitted without any read. If the usage is not
// known, a request that uses more is refused and can be repeated.
package quotas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/keymutex"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/quota"
)

const (
	// checkTimeout limits a check. It is shorter than the timeout of the webhook, so that the caller
	// gets the reason.
	checkTimeout = 2500 * time.Millisecond
	// behindDelay is the delay before a check looks again at a watch that is behind the ledger.
	behindDelay = 5 * time.Millisecond
	// lockCount is the number of locks for all namespaces.
	lockCount = 64
)

// Enforcer admits ResourceBindings that fit into the quotas of their namespace.
type Enforcer struct {
	quotas dynamic.NamespaceableResourceInterface
	index  *index
	loops  []watches.Loop
	// namespaces serializes the checks of each namespace, because they change the same ledger.
	namespaces      keymutex.KeyMutex
	isOnlyAdmission bool
	now             func() time.Time
}

// NewEnforcer returns an Enforcer for a control plane. It knows no usage until Run is called. isOnlyAdmission means
// that no other process admits objects of this control plane, so that the ledgers can stay in memory.
func NewEnforcer(karmada dynamic.Interface, isOnlyAdmission bool, now func() time.Time) *Enforcer {
	e := &Enforcer{
		quotas: karmada.Resource(policyv1alpha1.GroupVersion.WithResource(policyv1alpha1.ResourcePluralFederatedResourceQuota)),
		index:  newIndex(now), namespaces: newLocks(), isOnlyAdmission: isOnlyAdmission, now: now,
	}
	bindings := karmada.Resource(workv1alpha2.GroupVersion.WithResource(workv1alpha2.ResourcePluralResourceBinding))
	source := watches.NewSource(bindings, "resourcebindings", "", "", nil)
	listPage := source.ListPage
	source.ListPage = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := listPage(ctx, options)
		if list, accessErr := meta.ListAccessor(page); err == nil && accessErr == nil {
			e.index.recordListVersion(list.GetResourceVersion())
		}
		return page, err
	}
	e.loops = []watches.Loop{
		{Open: watches.FixedSource(source), Sink: &watches.Reduced[storedBinding]{
			Reduce: reduceBinding, Store: &bindingStore{index: e.index, isFirst: true}, Mutex: &e.index.mu,
		}},
		{Open: watches.FixedSource(watches.NewSource(e.quotas, "federatedresourcequotas", "", "", nil)), Sink: &watches.Reduced[storedQuota]{
			Reduce: reduceQuota, Store: &quotaStore{index: e.index, isFirst: true}, Mutex: &e.index.mu,
		}},
	}
	return e
}

// Run watches bindings and quotas until ctx ends. It can run only once.
func (e *Enforcer) Run(ctx context.Context) {
	var running sync.WaitGroup
	for i := range e.loops {
		running.Go(func() { e.loops[i].Run(ctx) })
	}
	running.Wait()
}

// Check returns an error with an API status if a quota refuses a request for a ResourceBinding. Its
// reason is QuotaExceeded if a limit would be exceeded. Otherwise, Check records the usage, unless the
// request is a dry run. old is nil if the request creates the binding.
func (e *Enforcer) Check(ctx context.Context, bound, old *workv1alpha2.ResourceBinding, dryRun bool) error {
	request := newRequest(bound, old)
	if !request.UsesMore() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := e.admit(ctx, bound.Namespace, request, dryRun)
	var exceeded *quota.ExceededError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exceeded):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: err.Error(),
		}}
	case errors.Is(err, quota.ErrTooManyReservations):
		return apierrors.NewTooManyRequests(fmt.Sprintf("namespace %s: %v", bound.Namespace, err), 1)
	}
	return apierrors.NewInternalError(fmt.Errorf("checking the FederatedResourceQuotas of namespace %s: %w", bound.Namespace, err))
}

func newRequest(bound, old *workv1alpha2.ResourceBinding) quota.Request {
	request := quota.Request{UID: bound.UID, After: quota.BindingUsage(&bound.Spec)}
	if old != nil {
		request.UID, request.Base, request.Before = old.UID, old.ResourceVersion, quota.BindingUsage(&old.Spec)
	}
	return request
}

var errNotListed = errors.New("the existing ResourceBindings and quotas are not listed yet; try again in a few seconds")

// admit admits a request that uses more than before, and records it in the ledger of the namespace. If
// the ledger has changed, it decides again.
func (e *Enforcer) admit(ctx context.Context, namespace string, request quota.Request, dryRun bool) error {
	select {
	case <-e.index.listed:
	case <-ctx.Done():
		return errNotListed
	}
	e.namespaces.LockKey(namespace)
	defer func() { _ = e.namespaces.UnlockKey(namespace) }()
	for {
		state, holder, hasQuota := e.index.namespace(namespace)
		if !hasQuota || !state.NeedsRoom(request) {
			return nil
		}
		ledger, err := state.Admit(request, e.now())
		if errors.Is(err, quota.ErrBehind) {
			select {
			case <-time.After(behindDelay):
				continue
			case <-ctx.Done():
			}
		}
		if err != nil || dryRun {
			return err
		}
		if e.isOnlyAdmission {
			e.index.setLedger(namespace, ledger)
			return nil
		}
		if isWritten, err := e.writeLedger(ctx, holder, ledger); isWritten || err != nil {
			return err
		}
	}
}

// writeLedger writes the ledger to the quota that holds it. It returns false if the quota has changed
// or is gone, and updates the index.
func (e *Enforcer) writeLedger(ctx context.Context, holder storedQuota, ledger quota.Ledger) (isWritten bool, err error) {
	text, err := json.Marshal(ledger)
	if err != nil {
		return false, fmt.Errorf("encoding the ledger: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": holder.resourceVersion,
		"annotations":     map[string]string{policyv1alpha1.FederatedResourceQuotaLedgerAnnotation: string(text)},
	}})
	if err != nil {
		return false, fmt.Errorf("encoding the patch of FederatedResourceQuota %s: %w", holder.name, err)
	}
	client := e.quotas.Namespace(holder.namespace)
	written, err := client.Patch(ctx, holder.name, types.MergePatchType, patch, metav1.PatchOptions{})
	isWritten = err == nil
	if apierrors.IsConflict(err) {
		written, err = client.Get(ctx, holder.name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		e.index.mu.Lock()
		defer e.index.mu.Unlock()
		deleteIn(e.index.quotas, holder.namespace, holder.name)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("recording the usage in FederatedResourceQuota %s: %w", holder.name, err)
	}
	current, err := reduceQuota(written)
	if err != nil {
		return false, err
	}
	e.index.mu.Lock()
	defer e.index.mu.Unlock()
	e.index.setQuota(current)
	return isWritten, nil
}

func newLocks() keymutex.KeyMutex { return keymutex.NewHashed(lockCount) }
