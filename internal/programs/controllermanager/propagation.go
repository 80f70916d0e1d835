package controllermanager

import (
	"karmada.io/karmada/internal/controllers/agentcsrapproving"
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/bindingstatus"
	"karmada.io/karmada/internal/controllers/dependencies"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/controllers/workdeletion"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
)

// allowedOverrides returns the options that specify whether override policies may change the
// identity of an object: its group, kind, namespace and name.
func allowedOverrides(set *gates.Set) override.Options {
	return override.Options{AllowIdentityChange: set.Enabled(gates.OverrideIdentity)}
}

func (o *Options) addDetector(h *programs.Host) (err error) {
	own := detector.DefaultOptions()
	if own.Propagated, err = o.Propagation.rules(); err != nil {
		return err
	}
	own.Workers, own.PolicyWorkers, own.ClusterPolicyWorkers = o.Workers.Templates, o.Workers.Policies, o.Workers.ClusterPolicies
	own.Backoff, own.RetryRate, own.RetryBurst, own.Events = o.QueueBackoff(), o.Backoff.QPS, o.Backoff.BucketSize, o.Events
	own.SetClaimLookup, own.Placer = h.SetClaimLookup, h.Placer
	own.PriorityQueue = h.Gates.Enabled(gates.ControllerPriorityQueue)
	own.Preemption = h.Gates.Enabled(gates.PropagationPolicyPreemption)
	own.MultiplePodTemplates = h.Gates.Enabled(gates.MultiplePodTemplatesScheduling)
	own.WorkloadAffinity = h.Gates.Enabled(gates.WorkloadAffinity)
	own.PriorityScheduling = h.Gates.Enabled(gates.PriorityBasedScheduling)
	own.ResourceQuotaEstimate = h.Gates.Enabled(gates.ResourceQuotaEstimate)
	return detector.Add(h.Manager, h.Watches, h.Templates, h.Interpreter, own)
}

func (o *Options) addDependencies(h *programs.Host) (err error) {
	own := dependencies.DefaultOptions()
	if own.Propagated, err = o.Propagation.rules(); err != nil {
		return err
	}
	own.Workers, own.Backoff, own.Events = o.Workers.Dependents, o.QueueBackoff(), o.Events
	return dependencies.Add(h.Manager, h.Watches, h.Templates, h.Interpreter, own)
}

func (o *Options) addNamespace(h *programs.Host) error {
	skipped, err := o.Propagation.rules()
	if err != nil {
		return err
	}
	own := namespace.DefaultOptions()
	own.Workers, own.Backoff = o.Workers.NamespaceClusterPairs(), o.QueueBackoff()
	own.SkippedNamespaces, own.AllowedOverrides = skipped.Namespaces, allowedOverrides(h.Gates)
	return namespace.Add(h.Manager, own)
}

func (o *Options) addBinding(h *programs.Host) (err error) {
	own := binding.DefaultOptions()
	if own.Propagated, err = o.Propagation.rules(); err != nil {
		return err
	}
	own.Workers, own.ClusterWorkers, own.Backoff, own.Events = o.Workers.Bindings, o.Workers.ClusterBindings, o.QueueBackoff(), o.Events
	own.InjectState, own.Allowed = h.Gates.Enabled(gates.StatefulFailoverInjection), allowedOverrides(h.Gates)
	return binding.Add(h.Manager, h.Templates, h.Interpreter, own)
}

// works returns the options of the controllers that process the Works of push mode clusters.
func (o *Options) works() programs.WorkOptions {
	return programs.WorkOptions{Workers: o.Workers.Works, Mode: o.ClusterStatus.Mode}
}

func (o *Options) addExecution(h *programs.Host) error { return o.AddExecution(h, o.works()) }

func (o *Options) addWorkStatus(h *programs.Host) error { return o.AddWorkStatus(h, o.works()) }

func (o *Options) addWorkDeletion(h *programs.Host) error {
	return workdeletion.Add(h.Manager, workdeletion.Options{Workers: o.Workers.Works, Backoff: o.QueueBackoff(), Guard: h.Guard})
}

func (o *Options) addBindingStatus(h *programs.Host) error {
	own := bindingstatus.DefaultOptions()
	own.Workers, own.Backoff, own.Events = max(o.Workers.Bindings, o.Workers.ClusterBindings), o.QueueBackoff(), o.Events
	own.StatusBytes = programs.MaxStatusBytes(h.Gates)
	return bindingstatus.Add(h.Manager, h.Templates, h.Interpreter, own)
}

func (o *Options) addAgentCSRApproving(h *programs.Host) error {
	own := agentcsrapproving.DefaultOptions()
	own.Backoff = o.QueueBackoff()
	return agentcsrapproving.Add(h.Manager, own)
}
