package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterCustomization teaches the control plane one kind through
// Lua scripts.
//
// A script runs under Lua 5.1 without access to files, network or environment,
// and has one second. Available are the string, table and math libraries,
// os.time, os.date, and the library obtained with require("kube"). The script
// must define the global function its rule names; it then decides the
// operation alone, before any webhook or built-in knowledge.
//
// Several objects may address the same kind as long as no two of them script
// the same rule; only scripts that find dependencies may be repeated, their
// results are united.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=".spec.target.apiVersion",name="TARGET-API-VERSION",type=string
// +kubebuilder:printcolumn:JSONPath=".spec.target.kind",name="TARGET-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=".metadata.creationTimestamp",name="AGE",type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which kind is described and how to interpret it.
	// +required
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationSpec pairs a kind with the scripts for it.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind that the scripts are about.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations holds the scripts, at most one for each operation.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget names exactly one kind in one version.
type CustomizationTarget struct {
	// APIVersion is the group and version of the kind, such as
	// "apps.example.io/v1". Other versions of the kind are not covered.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind in the singular, such as "Workload".
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules holds one optional script for each operation. An
// operation without a script is answered by the next source in line: a
// webhook, then what is built in.
type CustomizationRules struct {
	// Retention keeps values that belong to the member cluster, such as a
	// field that a controller there fills in, when the desired object is
	// applied again.
	// +optional
	Retention *LocalValueRetention `json:"retention,omitempty"`

	// ReplicaResource finds how many replicas an object asks for and what one
	// replica needs. The scheduler divides and places by the answer.
	// +optional
	ReplicaResource *ReplicaResourceRequirement `json:"replicaResource,omitempty"`

	// ComponentResource finds the parts of an object that run several pod
	// templates, each with its own replicas and needs.
	// +optional
	ComponentResource *ComponentResourceRequirement `json:"componentResource,omitempty"`

	// ReplicaRevision writes into an object the number of replicas that one
	// cluster was given.
	// +optional
	ReplicaRevision *ReplicaRevision `json:"replicaRevision,omitempty"`

	// StatusReflection picks what to collect from the object in a member
	// cluster. Without any rule for the kind the whole status is collected.
	// +optional
	StatusReflection *StatusReflection `json:"statusReflection,omitempty"`

	// StatusAggregation combines the collected statuses of all clusters into
	// the status of the template.
	// +optional
	StatusAggregation *StatusAggregation `json:"statusAggregation,omitempty"`

	// HealthInterpretation decides whether the object in a member cluster is
	// healthy.
	// +optional
	HealthInterpretation *HealthInterpretation `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation finds the objects that must travel with the
	// object to the same clusters.
	// +optional
	DependencyInterpretation *DependencyInterpretation `json:"dependencyInterpretation,omitempty"`
}

// LocalValueRetention holds the script that keeps values of the member cluster.
type LocalValueRetention struct {
	// LuaScript defines the function
	//
	//	function Retain(desiredObj, observedObj)
	//
	// where desiredObj is the object about to be applied and observedObj the
	// one found in the member cluster. It returns desiredObj with the values
	// to keep copied in:
	//
	//	function Retain(desiredObj, observedObj)
	//	  desiredObj.spec.paused = observedObj.spec.paused
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaResourceRequirement holds the script that finds replicas and their needs.
type ReplicaResourceRequirement struct {
	// LuaScript defines the function
	//
	//	function GetReplicas(desiredObj)
	//
	// where desiredObj is the template. It returns two values: the number of
	// replicas, and a table with the needs of one replica, or nil when they
	// are unknown:
	//
	//	function GetReplicas(desiredObj)
	//	  local kube = require("kube")
	//	  return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
	//	end
	//
	// The table may have the fields nodeClaim (nodeSelector, tolerations,
	// hardNodeAffinity), resourceRequest, namespace and priorityClassName.
	// +required
	LuaScript string `json:"luaScript"`
}

// ComponentResourceRequirement holds the script that finds the components of
// an object.
type ComponentResourceRequirement struct {
	// LuaScript defines the function
	//
	//	function GetComponents(desiredObj)
	//
	// where desiredObj is the template. It returns a list with one table for
	// each component, or nil; a table has the fields name, replicas, and
	// optionally replicaRequirements:
	//
	//	function GetComponents(desiredObj)
	//	  local kube = require("kube")
	//	  return {
	//	    {name = "master", replicas = 1,
	//	     replicaRequirements = kube.accuratePodRequirements(desiredObj.spec.master.template)},
	//	    {name = "worker", replicas = desiredObj.spec.worker.replicas,
	//	     replicaRequirements = kube.accuratePodRequirements(desiredObj.spec.worker.template)},
	//	  }
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaRevision holds the script that sets the replicas of an object.
type ReplicaRevision struct {
	// LuaScript defines the function
	//
	//	function ReviseReplica(desiredObj, desiredReplica)
	//
	// where desiredObj is the template and desiredReplica the number of
	// replicas assigned to one cluster. It returns the changed object:
	//
	//	function ReviseReplica(desiredObj, desiredReplica)
	//	  desiredObj.spec.replicas = desiredReplica
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusReflection holds the script that picks the status to collect.
type StatusReflection struct {
	// LuaScript defines the function
	//
	//	function ReflectStatus(observedObj)
	//
	// where observedObj is the object in the member cluster. It returns a
	// table, which is reported to the control plane as the status:
	//
	//	function ReflectStatus(observedObj)
	//	  return {readyReplicas = observedObj.status.readyReplicas}
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusAggregation holds the script that combines collected statuses.
type StatusAggregation struct {
	// LuaScript defines the function
	//
	//	function AggregateStatus(desiredObj, items)
	//
	// where desiredObj is the template and items a list with one table for
	// each cluster, or nil when there is none. A table has the fields
	// clusterName, status, applied, appliedMessage and health. It returns the
	// template with its new status:
	//
	//	function AggregateStatus(desiredObj, items)
	//	  if items == nil then
	//	    return desiredObj
	//	  end
	//	  local ready = 0
	//	  for _, item in ipairs(items) do
	//	    if item.status ~= nil then
	//	      ready = ready + (item.status.readyReplicas or 0)
	//	    end
	//	  end
	//	  desiredObj.status = {readyReplicas = ready}
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// HealthInterpretation holds the script that judges health.
type HealthInterpretation struct {
	// LuaScript defines the function
	//
	//	function InterpretHealth(observedObj)
	//
	// where observedObj is the object in the member cluster. It returns true
	// when the object is healthy, otherwise false:
	//
	//	function InterpretHealth(observedObj)
	//	  return observedObj.status.readyReplicas == observedObj.spec.replicas
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// DependencyInterpretation holds the script that finds dependencies.
type DependencyInterpretation struct {
	// LuaScript defines the function
	//
	//	function GetDependencies(desiredObj)
	//
	// where desiredObj is the template. It returns a list with one table for
	// each dependency; a table has apiVersion, kind, optionally namespace, and
	// name or labelSelector:
	//
	//	function GetDependencies(desiredObj)
	//	  return {
	//	    {apiVersion = "v1", kind = "ConfigMap",
	//	     namespace = desiredObj.metadata.namespace, name = desiredObj.spec.config},
	//	  }
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ResourceInterpreterCustomizationList is a list of customizations.
//
// +kubebuilder:object:root=true
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items holds the customizations.
	Items []ResourceInterpreterCustomization `json:"items"`
}
