// Runs the low precision pass inside the installed OpenVINO on one IR file, with any restrictions.
//
//   driver IN.xml OUT.xml    directives on standard input, one a line:
//
//     precision CONVOLUTION 0:u8 1:i8        element types by ports ("0,1:u8": two ports share a list)
//     granularity Convolution 0 1:           per tensor on port 0, per channel on port 1; none: per tensor on all
//     update 0 | deq f16 | default u8,i8     parameters
//     reshape 1                              reshape_ignore_per_tensor_quantization_check
//     disable AddTransformation              a pass that does not run
//     callback AddTransformation bias        a pass that leaves alone what a predicate is true of
//     strip 65536 1                          FQStrippingTransformation instead; 1: with adjusted weights
//     float8_cache                           the passes that keep a cache of keys and values in f8 instead
//
// The wheel has the pass but no header for it, so the classes are declared here as its library lays them out.

#include <openvino/op/convolution.hpp>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset.hpp>
#include <openvino/pass/graph_rewrite.hpp>
#include <openvino/pass/manager.hpp>
#include <openvino/pass/pass.hpp>
#include <openvino/pass/serialize.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ov::pass::low_precision {

using PrecisionsByPorts = std::vector<std::pair<std::vector<size_t>, std::vector<element::Type>>>;

struct PrecisionsRestriction {
    NodeTypeInfo operation;
    bool specify_version = false;
    PrecisionsByPorts by_ports;
    std::function<PrecisionsByPorts(const std::shared_ptr<Node>&)> by_node;
};

struct PortGranularity {
    size_t port;
    int granularity;  // 0: per channel, 1: per tensor
};

struct QuantizationGranularityRestriction {
    NodeTypeInfo operation;
    bool specify_version = false;
    std::vector<PortGranularity> ports;
};

struct LayerTransformation {
    struct Params {
        bool update_precisions = true;
        element::Type deq_precision = element::f32;
        std::vector<element::Type> default_precisions{element::u8, element::i8};
        bool reshape_ignore_per_tensor_quantization_check = false;
        char later_fields[64] = {};
    };
};

class LowPrecision : public ModelPass {
public:
    LowPrecision(const std::vector<PrecisionsRestriction>&,
                 const std::vector<QuantizationGranularityRestriction>&,
                 const LayerTransformation::Params);
    bool run_on_model(const std::shared_ptr<Model>&) override;

private:
    char fields[4096];
};

#ifdef HAS_STRIPPING
class FQStrippingTransformation : public ModelPass {
public:
    FQStrippingTransformation(const std::set<size_t>& levels, bool need_weights_adjustment);
    bool run_on_model(const std::shared_ptr<Model>&) override;

private:
    char fields[256];
};
#endif

#ifdef HAS_FLOAT8_CACHE
class MoveFakeConvertUpThroughKVCacheConcat : public MatcherPass {
public:
    MoveFakeConvertUpThroughKVCacheConcat();
};

class KVCacheConcat : public MatcherPass {
public:
    KVCacheConcat(const std::shared_ptr<Model>&);
};

class ConcatTransformation : public MatcherPass {
public:
    ConcatTransformation(const LayerTransformation::Params&);

private:
    char fields[1024];
};
#endif

struct NetworkHelper {
    static bool isConstantPath(const std::shared_ptr<Node>&);
};

}  // namespace ov::pass::low_precision

namespace ov {
bool marked_as_bias(const std::shared_ptr<const Node>&);
}

#ifdef HAS_FLOAT8_CACHE
namespace ov::pass {
class FakeConvertDecomposition : public MatcherPass {
public:
    FakeConvertDecomposition();
};
}  // namespace ov::pass
#endif

namespace lpt = ov::pass::low_precision;

static std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        parts.push_back(part);
    return parts;
}

static std::vector<ov::element::Type> types(const std::string& text) {
    std::vector<ov::element::Type> result;
    for (const auto& name : split(text, ','))
        result.emplace_back(name);
    return result;
}

static ov::NodeTypeInfo type_of(const std::string& operation) {
    for (const auto& opset : ov::get_available_opsets())
        if (opset.second().contains_type(operation))
            return std::shared_ptr<ov::Node>(opset.second().create(operation))->get_type_info();
    throw std::runtime_error("no operation " + operation);
}

// Predicates, the counterparts of the Python functions that configurations use as callbacks.

using Leaves = std::function<bool(const std::shared_ptr<const ov::Node>&)>;

static std::string kind(const ov::Node* node) {
    return node->get_type_info().name;
}

static const ov::Node* above(const ov::Node* node) {
    return node->get_input_node_ptr(0);
}

static bool scaled_by_constant(const ov::Node* node, const char* operation) {
    if (kind(node) != operation)
        return false;
    const auto other = node->get_input_node_ptr(1);
    return kind(other) == "Constant" || (kind(other) == "Convert" && kind(above(other)) == "Constant");
}

static const ov::Node* requantized_convolution(const ov::Node* quantize, bool needs_bias) {
    auto node = above(quantize);
    if (scaled_by_constant(node, "Add"))
        node = above(node);
    else if (needs_bias)
        return nullptr;
    if (!scaled_by_constant(node, "Multiply"))
        return nullptr;
    return kind(above(node)) == "Convolution" ? above(node) : nullptr;
}

static bool is_requantization(const ov::Node* quantize, bool needs_bias = false) {
    const auto layer = requantized_convolution(quantize, needs_bias);
    return layer && layer->get_input_element_type(0) == quantize->get_output_element_type(0);
}

static bool is_small_convolution(const std::shared_ptr<const ov::Node>& node) {
    const auto layer = std::dynamic_pointer_cast<const ov::op::v1::Convolution>(node);
    if (!layer || layer->get_strides() != ov::Strides{1, 1} || node->get_input_partial_shape(1).is_dynamic())
        return false;
    const auto shape = node->get_input_shape(1);
    return shape[2] == 3 && shape[3] == 3 && std::min(shape[0], shape[1]) < 512;
}

static Leaves predicate(const std::string& name) {
    if (name == "marked_as_bias")
        return [](const auto& node) { return ov::marked_as_bias(node); };
    if (name == "is_no_fully_connected")
        return [](const auto& node) {
            const auto rank = node->get_input_partial_shape(1).rank().get_length();
            return !lpt::NetworkHelper::isConstantPath(node->get_input_node_shared_ptr(1)) || (rank != 2 && rank != 3);
        };
    if (name == "is_small_convolution")
        return is_small_convolution;
    if (name == "is_requantization")
        return [](const auto& node) { return is_requantization(node.get()); };
    if (name == "stands_after_requantization")
        return [](const auto& node) {
            const auto quantize = above(node.get());
            const auto type = quantize->get_output_element_type(0);
            return kind(quantize) == "FakeQuantize" && (type == ov::element::u8 || type == ov::element::i8) &&
                   is_requantization(quantize, true);
        };
    throw std::runtime_error("no predicate " + name);
}

// As the NPU plugin runs them. The declared classes are not the true ones: they are never destroyed.
static void register_float8_cache(ov::pass::Manager& manager,
                                  const std::shared_ptr<ov::Model>& model,
                                  lpt::LayerTransformation::Params params) {
#ifdef HAS_FLOAT8_CACHE
    const auto kept = [](ov::pass::MatcherPass* pass) {
        return std::shared_ptr<ov::pass::MatcherPass>(pass, [](auto) {});
    };
    params.default_precisions = {ov::element::f8e4m3, ov::element::f8e5m2};
    manager.register_pass_instance(kept(new lpt::MoveFakeConvertUpThroughKVCacheConcat));
    const auto rewrite = manager.register_pass<ov::pass::GraphRewrite>();
    rewrite->add_matcher(kept(new ov::pass::FakeConvertDecomposition));
    rewrite->add_matcher(kept(new lpt::ConcatTransformation(params)));
    rewrite->add_matcher(kept(new lpt::KVCacheConcat(model)));
#else
    throw std::runtime_error("this library has no passes for a cache in f8");
#endif
}

// PassConfig takes the pass as a type; here it is known by its name only.
template <int number>
struct PassOf {
    static inline std::string name;
    static const ov::DiscreteTypeInfo& get_type_info_static() {
        static const ov::DiscreteTypeInfo info(name.c_str(), "0");
        return info;
    }
};

template <int number = 0>
static void set_callback(ov::pass::PassConfig& config, int at, const std::string& pass, const Leaves& leaves) {
    if constexpr (number < 8) {
        if (number != at)
            return set_callback<number + 1>(config, at, pass, leaves);
        PassOf<number>::name = pass;
        config.set_callback<PassOf<number>>(leaves);
    } else {
        throw std::runtime_error("too many callbacks");
    }
}

static std::shared_ptr<ov::pass::ModelPass> stripping(const std::set<size_t>& levels, bool adjusted) {
#ifdef HAS_STRIPPING
    return {new lpt::FQStrippingTransformation(levels, adjusted), [](auto) {}};
#else
    throw std::runtime_error("this library has no FQStrippingTransformation");
#endif
}

int main(int argc, char** argv) {
    if (argc != 3)
        return std::cerr << "usage: driver IN.xml OUT.xml < directives\n", 2;
    ov::Core core;
    core.get_property("CPU", ov::device::full_name);  // loads the plugin, which reads type-relaxed operations
    const auto model = core.read_model(argv[1]);

    std::vector<lpt::PrecisionsRestriction> precisions;
    std::vector<lpt::QuantizationGranularityRestriction> granularities;
    lpt::LayerTransformation::Params params;
    std::vector<std::string> disabled;
    std::vector<std::pair<std::string, Leaves>> callbacks;
    std::set<size_t> levels;
    bool adjusted = false, float8_cache = false;
    for (std::string line; std::getline(std::cin, line);) {
        std::stringstream words(line);
        std::string directive, subject;
        words >> directive >> subject;
        if (directive == "precision") {
            lpt::PrecisionsRestriction restriction{type_of(subject)};
            for (std::string word; words >> word;) {
                const auto colon = word.find(':');
                std::vector<size_t> ports;
                for (const auto& port : split(word.substr(0, colon), ','))
                    ports.push_back(std::stoul(port));
                restriction.by_ports.emplace_back(ports, types(word.substr(colon + 1)));
            }
            precisions.push_back(restriction);
        } else if (directive == "granularity") {
            lpt::QuantizationGranularityRestriction restriction{type_of(subject)};
            for (std::string word; words >> word;)
                restriction.ports.push_back({std::stoul(word), word.find(':') == std::string::npos});
            granularities.push_back(restriction);
        } else if (directive == "update") {
            params.update_precisions = subject == "1";
        } else if (directive == "deq") {
            params.deq_precision = ov::element::Type(subject);
        } else if (directive == "default") {
            params.default_precisions = types(subject);
        } else if (directive == "reshape") {
            params.reshape_ignore_per_tensor_quantization_check = subject == "1";
        } else if (directive == "disable") {
            // this class has no type information of its own and answers with that of the class above it
            const bool nameless = subject == "ConvolutionBackpropDataTransformation";
            disabled.push_back(nameless ? "low_precision::LayerTransformation" : subject);
        } else if (directive == "callback") {
            std::string name;
            words >> name;
            callbacks.emplace_back(subject, predicate(name));
        } else if (directive == "strip") {
            levels.insert(std::stoul(subject));
            words >> adjusted;
        } else if (directive == "float8_cache") {
            float8_cache = true;
        }
    }

    // The declared class is not the true one: it is never destroyed, and the process leaves at once.
    std::shared_ptr<ov::pass::ModelPass> pass;
    if (levels.empty())
        pass = {new lpt::LowPrecision(precisions, granularities, params), [](auto) {}};
    else
        pass = stripping(levels, adjusted);
    ov::pass::Manager manager;
    for (const auto& name : disabled)
        manager.get_pass_config()->disable(ov::DiscreteTypeInfo(name.c_str(), "0"));
    for (size_t at = 0; at < callbacks.size(); ++at)
        set_callback(*manager.get_pass_config(), at, callbacks[at].first, callbacks[at].second);
    if (float8_cache)
        register_float8_cache(manager, model, params);
    else
        manager.register_pass_instance(pass);
    std::cout << "the pass begins" << std::endl;
    manager.run_passes(model);
    std::cout << "the pass ends" << std::endl;
    const std::string out = argv[2];
    ov::pass::Serialize(out, out.substr(0, out.size() - 3) + "bin").run_on_model(model);
    std::_Exit(0);
}
