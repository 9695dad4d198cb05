"""Settings of Sphinx for the pages that docs/build.py lays out."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

# Extensions of our own stand beside this file.
sys.path.insert(0, str(Path(__file__).parent))

project = "manifold-observer"
author = copyright = "The manifold-observer developers"
release = version = version_of("manifold-observer").partition("+")[0]

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "sphinx_copybutton", "docstrings", "mathml"]
root_doc = "docs/index"
include_patterns = ["docs/**", "deploy/README.md", "pipeline/DESIGN.md", "CHANGELOG.md", "tests/*/README.md"]
exclude_patterns = ["**.ipynb_checkpoints"]
nitpick_ignore_regex = [(r"py:.*", r".*")]
keep_warnings = False

html_theme = "furo"
html_title = f"manifold-observer {release}"
html_static_path, html_css_files = ["static"], ["site.css"]
html_show_sourcelink = html_copy_source = False
html_theme_options = {"source_edit_link": "", "source_view_link": "", "sidebar_hide_name": False}
html_math_renderer = "mathml"
pygments_style, pygments_dark_style = "friendly", "monokai"

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Notebooks are committed with their outputs.
nb_execution_mode = "off"
nb_render_image_options = {"align": "center"}

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_use_unqualified_type_names = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
